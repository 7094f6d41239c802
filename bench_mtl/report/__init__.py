"""Reports: tables, figures and words from the results of a suite; and what a document of another kind is made with.

The names of the second kind are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from bench_mtl.report.write import replace_files, summary_frame, write_and_sum_up, write_report
from bench_mtl.results.view import View

if TYPE_CHECKING:
    from bench_mtl.report.document import Part
    from bench_mtl.report.page.html import article
    from bench_mtl.report.render import escaped, to_csv, to_markdown
    from bench_mtl.report.text import environment as environment_words

_MODULES = {
    "Part": ("document", "Part"),
    "article": ("page.html", "article"),
    "environment_words": ("text", "environment"),
    "escaped": ("render", "escaped"),
    "to_csv": ("render", "to_csv"),
    "to_markdown": ("render", "to_markdown"),
}

__all__ = [
    "Part",
    "View",
    "article",
    "environment_words",
    "escaped",
    "replace_files",
    "summary_frame",
    "to_csv",
    "to_markdown",
    "write_and_sum_up",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bench_mtl.report' has no attribute '{name}'")
    import importlib

    module, attribute = _MODULES[name]
    return getattr(importlib.import_module(f"bench_mtl.report.{module}"), attribute)
