"""The report as one HTML file that works from disk, without a network."""

from bench_mtl.report.page.build import page

__all__ = ["page"]
