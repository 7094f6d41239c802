"""The reports in reports/: that they are those of their results, and that the README says what they say."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

from bench_mtl.engine.suite_file import shipped_suites
from bench_mtl.report import formats
from bench_mtl.report.document import report_tables
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.markdown import markdown
from bench_mtl.report.render import format_ratio, format_seconds, to_csv
from bench_mtl.results.loading import read_results

ROOT = Path(__file__).parents[3]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports").glob("*/results.sqlite"))

#: Those that are looked at every time: one with a sweep, one of several problems, one with measures. The others are slow tests.
QUICK = ("headline-hinge", "headline-lowrank", "singer-synthetic-logistic")

#: Problems and solvers of the README's table by the report and the labels that they stand for.
PROBLEMS = {
    "hinge, 60 tasks, 200 features, 40 examples a task": ("headline-hinge", "hinge, d=200 m=60 n=40"),
    "the same, 160 examples a task": ("headline-hinge", "hinge, d=200 m=60 n=160"),
    "the same, 640 examples a task": ("headline-hinge", "hinge, d=200 m=60 n=640"),
    "logistic loss in an l1 ball, 800 features": ("singer-synthetic-logistic", "logistic, d=800 radius=100.0"),
    "least squares in an l1 ball, 800 features": ("singer-synthetic-ls", "least squares, d=800 radius=truth"),
    "multiclass boosting, 300 examples, 100 stumps": ("boosting-table", "synthetic, 300 examples norm=l12"),
    "the same, 2000 examples, 500 stumps": ("boosting-table", "synthetic norm=l12"),
    "portfolio, 500 assets": ("singer-portfolio", "portfolio, 500 periods, 500 assets"),
    "sparse + low rank, 30 tasks, 100 features": ("headline-lowrank", "sparse + low rank, d=100 m=30 n=60"),
    "sparse + low rank, Scene": ("headline-lowrank", "sparse + low rank, Scene"),
    "sparse + low rank, Yahoo Reference, 26397 features": ("headline-lowrank", "sparse + low rank, Yahoo Reference"),
}
SOLVERS = {
    "pdlp": "PDLP",
    "scs": "SCS",
    "scs_tuned": "SCS, tuned",
    "scs_tuned_sdp": "SCS, tuned",
    "ecos": "ECOS",
    "clarabel": "Clarabel",
    "highs_ipm": "HiGHS, interior point",
}


def test_every_shipped_suite_has_a_published_report_that_is_listed():
    assert {folder.name for folder in PUBLISHED} == set(shipped_suites())
    listed = (ROOT / "reports" / "README.md").read_text()
    for folder in PUBLISHED:
        assert f"({folder.name}/report.md)" in listed
        assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    "folder", [pytest.param(folder, marks=[] if folder.name in QUICK else pytest.mark.slow, id=folder.name) for folder in PUBLISHED]
)
def test_a_published_report_is_that_of_its_results(folder):
    results = read_results(folder)
    tables = report_tables(results)
    text = markdown(results, tables, *drawings(results, tables), formats.ALL)
    assert text == (folder / "report.md").read_text(), "make reports writes it again"
    for name, table in tables.items():
        written, now = (pd.read_csv(source) for source in (folder / "tables" / f"{name}.csv", io.BytesIO(to_csv(table))))
        pd.testing.assert_frame_equal(written, now, rtol=1e-9)  # not to the bit: processors differ in the last digit of a logarithm
    for link in re.findall(r"\]\((figures/[^)]*)\)", text):
        assert (folder / link).is_file()


def test_the_readme_says_what_the_reports_say():
    row = r"^\|(.*?)\| (1e-\d) \| (\w+) \| ([\d.]+) \| (.*?) \| ([\d.]+|-) \| (.*?) \|$"
    rows = re.findall(row, (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) >= 10
    problem = ""
    for about, gap, winner, seconds, rival, its_seconds, ratio in rows:
        problem = about.strip() or problem
        report, label = PROBLEMS[problem]
        with (ROOT / "reports" / report / "tables" / "winners.csv").open(newline="") as file:
            (found,) = [row for row in csv.DictReader(file) if row["problem"] == label and float(row["target"]) == float(gap)]
        assert (found["winner"], format_seconds(float(found["seconds"]))) == (winner, seconds), (problem, gap)
        if its_seconds == "-":
            assert not found["other"], (problem, gap)
            assert ratio == ("-" if not found["ratio"] else f"over {format_ratio(float(found['ratio'])).rstrip('x')}")
        else:
            assert (SOLVERS[found["other"]], format_seconds(float(found["other_seconds"]))) == (rival, its_seconds), (problem, gap)
            assert format_ratio(float(found["ratio"])).rstrip("x") == ratio, (problem, gap)
