"""Figures of a report, in one style."""
