"""A static site from results: an index, a page for every suite, family of problems and instance, and the history of a suite."""

from bench_mtl.publish.site import Published, publish

__all__ = ["Published", "publish"]
