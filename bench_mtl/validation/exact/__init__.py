"""Bounds held to exact rational arithmetic, on small nasty instances of every problem."""
