"""Learning from how tasks went."""
