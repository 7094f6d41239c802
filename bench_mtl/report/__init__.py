"""Reports: tables, figures and words from the results of a suite."""

from bench_mtl.report.write import summary_frame, write_and_sum_up, write_report
from bench_mtl.results.view import View

__all__ = ["View", "summary_frame", "write_and_sum_up", "write_report"]
