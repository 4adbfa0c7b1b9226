"""The process that watches everything, tells how it is, and serves the dashboard."""
