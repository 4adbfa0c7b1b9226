"""Models on disk: which there are, where they come from, how they are installed and found.

Nothing here runs a model, so nothing here needs more than the standard library and msgspec.
"""
