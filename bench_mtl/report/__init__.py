"""Reports: tables, figures and words from the results of a suite; and documents that users write in the same form."""

from bench_mtl.report.columns import escaped, to_csv, to_markdown
from bench_mtl.report.document import Document, Part
from bench_mtl.report.render.html import page
from bench_mtl.report.render.markdown import markdown
from bench_mtl.report.words import environment as environment_words
from bench_mtl.report.write import replace_files, summary_frame, write_and_sum_up, write_report
from bench_mtl.results.view import View

__all__ = [
    "Document",
    "Part",
    "View",
    "environment_words",
    "escaped",
    "markdown",
    "page",
    "replace_files",
    "summary_frame",
    "to_csv",
    "to_markdown",
    "write_and_sum_up",
    "write_report",
]
