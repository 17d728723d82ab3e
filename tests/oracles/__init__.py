"""What was worked out by hand, and the package derives."""
