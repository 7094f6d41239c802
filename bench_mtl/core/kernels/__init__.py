"""The decorators that compile loops, and loops that others are made of.

Numba is imported only in files named `kernels.py` and in folders named `kernels/`, which are beside what they serve and are themselves
imported only inside the functions that call them. Kernels check nothing but the finiteness of their data, and release the GIL.
"""
