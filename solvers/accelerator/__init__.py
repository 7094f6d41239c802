"""Methods whose loops, or steps, run on an accelerator, by JAX."""

from bench_mtl.solvers.accelerator.interior import AcceleratorInteriorPoint
from bench_mtl.solvers.accelerator.solver import AcceleratorGradient, AcceleratorPDHG

__all__ = ["AcceleratorGradient", "AcceleratorInteriorPoint", "AcceleratorPDHG"]
