"""Working memory: what agents are to reach, what they do for it, and what they know of others."""
