"""First-order methods whose loops run on an accelerator, by JAX."""

from bench_mtl.solvers.accelerator.solver import AcceleratorGradient, AcceleratorPDHG

__all__ = ["AcceleratorGradient", "AcceleratorPDHG"]
