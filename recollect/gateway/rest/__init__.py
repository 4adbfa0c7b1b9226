"""REST: a route for every declared operation; nothing is written per operation."""
