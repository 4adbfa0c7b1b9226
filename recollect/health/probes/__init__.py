"""What is looked at, one probe a file."""
