"""The version of the package, which stands here alone."""

__version__ = "0.2.0"
