"""What keeps a store in order: ages, backups, checks."""
