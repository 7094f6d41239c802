"""An independent audit of published reports: every sentence, ratio and bound of report.md derived again from the rows.

The rows are read with sqlite3 (`rows`), and times, winners, ratios and bounds derived in plain Python (`clocks`, `entrants`, `pairs`,
`contests`, `enclosures`), without what reports are made with: a fault there cannot hide itself. How sentences read stands in `patterns`
alone.
"""

from bench_mtl.report.check.faults import Fault
from bench_mtl.report.check.report import Checked, check_report

#: What `--check` says once of what it leaves out.
NOT_CHECKED = "Captions of figures are not checked."

__all__ = ["NOT_CHECKED", "Checked", "Fault", "check_report"]
