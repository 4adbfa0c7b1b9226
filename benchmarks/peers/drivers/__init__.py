"""One program for each store that is measured; each runs in the environment of its store."""
