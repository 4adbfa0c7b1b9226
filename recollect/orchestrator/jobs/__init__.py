"""Jobs and their runs, as the orchestrator keeps them for the scheduler."""
