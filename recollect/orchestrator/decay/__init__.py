"""Decay: what has faded goes to a colder tier, and out of the last one into the archive."""
