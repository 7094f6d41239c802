"""Reports: tables, figures and words from the results of a suite."""

from bench_mtl.report.write import summary_frame, summary_text, write_report

__all__ = ["summary_frame", "summary_text", "write_report"]
