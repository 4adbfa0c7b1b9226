"""Records on their way out of a store and into another, as they are."""
