"""Figures of a report, in one style, which users' plots can have too."""

from bench_mtl.report.figures.style import files as figure_files
from bench_mtl.report.figures.style import looks_in_turn, solver_look, styled, use_style

__all__ = ["figure_files", "looks_in_turn", "solver_look", "styled", "use_style"]
