"""What is kept out of the memory, or out of its way."""
