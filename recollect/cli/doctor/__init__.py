"""`recollect doctor`: the check-up, part by part."""
