"""What is kept near at hand: bounded, and never the only copy."""
