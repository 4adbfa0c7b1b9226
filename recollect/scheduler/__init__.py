"""The scheduler: runs the jobs that keep a store in order, each by its schedule."""
