"""Reports as HTML files that work from disk, without a network."""

from bench_mtl.report.page.html import article, page

__all__ = ["article", "page"]
