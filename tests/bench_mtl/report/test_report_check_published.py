"""The reports in reports/, and the list of them, say nothing but what their rows do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bench_mtl.report.check import check_report
from bench_mtl.report.index import index_faults

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.mark.parametrize("folder", [pytest.param(path.parent, id=path.parent.name) for path in sorted(REPORTS.glob("*/results.sqlite"))])
def test_a_published_report_follows_from_its_rows(folder):
    assert [str(fault) for fault in check_report(folder).faults] == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("scaling-lowrank", r"^\|.*by \w+ +\| \w+ +\| +1e-\d \| \w+ +\| +\d+ \| +-?\d+\.\d(\d) "),
        ("scaling-lowrank", r"^\|.*by \w+ +\| \w+ +\| +1e-\d \| \w+ +\| +\d+ \| .*to -?\d+\.\d(\d)\)"),
        ("scaling-lowrank", r"^\|.*by \w+ +\| \w+ +\| +1e-\d \| \w+ +\| +\d+ \|.*?(\d) \|$"),
        ("singer-mnist", r"^\|.*\| non-zeros .*?\| +\d*?(\d) .*\|$"),
        ("singer-mnist", r"^\|.*\| non-zeros .*?(\d)[.)]? *\|$"),
    ],
)
def test_a_digit_of_scaling_and_of_measures_is_no_other(tmp_path, name, row):
    copy = tmp_path / name
    shutil.copytree(REPORTS / name, copy)
    path = copy / "report.md"
    text = path.read_text()
    found = re.search(row, text, re.MULTILINE)
    assert found is not None
    path.write_text(f"{text[: found.start(1)]}{(int(found[1]) + 5) % 10}{text[found.end(1) :]}")
    (fault,) = check_report(copy).faults
    assert fault.line == text[: found.start(1)].count("\n") + 1


def test_the_findings_in_the_list_are_those_of_the_rows():
    assert [str(fault) for fault in index_faults(REPORTS)] == []
