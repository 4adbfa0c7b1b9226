"""What every process with a web side needs: whose names it answers to, and where it listens."""
