"""Recollect beside other stores, each in an environment of its own, on the same data."""
