"""Specialised against generic solvers on structured multi-task problems, every number proven."""

__version__ = "0.1.0"
