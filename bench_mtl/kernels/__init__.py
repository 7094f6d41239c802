"""Compiled kernels: the only modules that import numba, and themselves imported only inside the functions that call them.

Kernels check nothing but the finiteness of their data, and release the GIL.
"""

from bench_mtl.kernels.cache import forget_outdated

forget_outdated()
