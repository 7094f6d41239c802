"""Problem families, one a file. Their classes can be imported from here, too."""

from bench_mtl.core.lazy import class_finder

__getattr__ = class_finder(__name__, __path__)
