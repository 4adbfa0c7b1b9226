"""What went wrong anywhere in the system, and how it is told."""
