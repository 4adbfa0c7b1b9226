"""Programs that measure Recollect beside the raw limits of the machine, in the same run."""
