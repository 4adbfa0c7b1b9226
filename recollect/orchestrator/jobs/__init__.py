"""Jobs and their runs, and the leases under which they are done, for the scheduler."""
