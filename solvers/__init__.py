"""Algorithms, one a file."""
