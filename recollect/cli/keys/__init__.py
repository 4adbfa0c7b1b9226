"""`recollect keys`: who is known by which key, and what they may do."""
