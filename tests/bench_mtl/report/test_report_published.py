"""The reports in reports/: that they are those of their results."""

import re
from pathlib import Path

import pytest

from bench_mtl.engine.suite_file import shipped_suites
from bench_mtl.report.check import check_report, suite_report
from bench_mtl.report.index import index_faults

ROOT = Path(__file__).parents[3]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports").glob("*/results.sqlite"))

#: Those that are looked at every time: one with a sweep, one of several problems, one with measures. The others are slow tests.
QUICK = ("headline-hinge", "headline-lowrank", "singer-synthetic-logistic")

#: Suites whose results need a device that none of the published results has run on.
UNPUBLISHED = {"headline-accelerator", "headline-accelerator-one-core"}


def test_every_shipped_suite_has_a_published_report_that_is_listed():
    assert {folder.name for folder in PUBLISHED} == set(shipped_suites()) - UNPUBLISHED
    listed = (ROOT / "reports" / "README.md").read_text()
    for folder in PUBLISHED:
        assert f"({folder.name}/report.md)" in listed


@pytest.mark.parametrize(
    "folder", [pytest.param(folder, marks=[] if folder.name in QUICK else pytest.mark.slow, id=folder.name) for folder in PUBLISHED]
)
def test_a_published_report_is_that_of_its_results(folder):
    assert check_report(folder, suite_report)[0] == [], "make reports writes it again"
    assert re.findall(r"^!\[.*\]\((.*)\)", (folder / "report.md").read_text(), re.MULTILINE) == ["cover.svg"]
    assert (folder / "cover.svg").is_file()


def test_the_findings_in_the_list_are_those_of_the_rows():
    assert [str(fault) for fault in index_faults(ROOT / "reports")] == []
