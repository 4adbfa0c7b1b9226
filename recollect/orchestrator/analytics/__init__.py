"""The store as a whole: how it grows, what is used, what fades."""
