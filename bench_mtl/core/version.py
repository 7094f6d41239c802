"""The version of the package, which is here alone."""

__version__ = "0.2.0"
