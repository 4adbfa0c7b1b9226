"""The change feed: the journal read in order, with a live end that wakes those who wait."""
