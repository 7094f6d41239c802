"""Compiled loops that several solvers run."""
