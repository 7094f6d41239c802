"""The reports in reports/, and the list of them, say nothing but what their rows do."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_mtl.report.check import check_report
from bench_mtl.report.index import index_faults

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.mark.parametrize("folder", [pytest.param(path.parent, id=path.parent.name) for path in sorted(REPORTS.glob("*/results.sqlite"))])
def test_a_published_report_follows_from_its_rows(folder):
    assert [str(fault) for fault in check_report(folder).faults] == []


def test_the_findings_in_the_list_are_those_of_the_rows():
    assert [str(fault) for fault in index_faults(REPORTS)] == []
