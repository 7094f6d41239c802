"""Figures of a report, in one style, which plots of one's own can have too."""

from bench_mtl.report.figures.own import solver_look, use_style

__all__ = ["solver_look", "use_style"]
