"""Problem families, one a file."""
