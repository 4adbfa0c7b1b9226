"""Moving memories on to the next tier: what is due, which belong together, what sums them up."""
