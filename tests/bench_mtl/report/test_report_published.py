"""The reports in reports/: that they are those of their results, and that README, results at a glance and paper say what they say."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from bench_mtl.engine.suite_file import shipped_suites
from bench_mtl.report.check import check_report, suite_report
from bench_mtl.report.columns import format_ratio, format_seconds
from bench_mtl.report.index import index_faults
from bench_mtl.report.registry import report_tables
from bench_mtl.results.loading import read_results

ROOT = Path(__file__).parents[3]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports").glob("*/results.sqlite"))

#: Those that are looked at every time: one with a sweep, one of several problems, one with measures. The others are slow tests.
QUICK = ("headline-hinge", "headline-lowrank", "singer-synthetic-logistic")

EACH = pytest.mark.parametrize(
    "folder", [pytest.param(folder, marks=[] if folder.name in QUICK else pytest.mark.slow, id=folder.name) for folder in PUBLISHED]
)

#: Problems and solvers of these tables by the report and the labels that they stand for.
PROBLEMS = {
    "hinge, 60 tasks, 200 features, 40 examples a task": ("headline-hinge", "hinge, d=200 m=60, 40 examples a task"),
    "the same, 160 examples a task": ("headline-hinge", "hinge, d=200 m=60, 160 examples a task"),
    "the same, 640 examples a task": ("headline-hinge", "hinge, d=200 m=60, 640 examples a task"),
    "hinge, Scene, standardised": ("headline-hinge-real", "hinge, Scene, standardised"),
    "hinge, Yeast, standardised": ("headline-hinge-real", "hinge, Yeast, standardised"),
    "sparse + low rank, 30 tasks, 100 features": ("headline-lowrank", "sparse + low rank, d=100 m=30, 60 examples a task"),
    "sparse + low rank, Scene": ("headline-lowrank", "sparse + low rank, Scene"),
    "sparse + low rank, Yahoo Reference, 26397 features": ("headline-lowrank", "sparse + low rank, Yahoo Reference"),
    "least squares in an l1 ball, 800 features": ("singer-synthetic-ls", "least squares, d=800 radius=truth"),
    "logistic loss in an l1 ball, 800 features": ("singer-synthetic-logistic", "logistic, d=800 radius=100.0"),
    "multiclass boosting, 300 examples, 100 stumps": ("boosting-table", "synthetic, 300 examples norm=l1inf"),
    "the same, hinge loss": ("boosting-table", "synthetic, 300 examples, hinge"),
    "multiclass boosting, 2000 examples, 500 stumps": ("boosting-table", "synthetic norm=l1inf"),
    "the hardest of four portfolios, 200 assets": ("singer-portfolio", "portfolio, 500 volatile periods, 200 assets"),
    "dirty model, 16 tasks, 263 features": ("more-problems", "dirty model, oes97"),
    "trace norm, Scene": ("more-problems", "trace norm, Scene"),
    "relationships of 139 schools": ("more-problems", "relationships, School"),
    "dirty model, 6 tasks, 30 features": ("more-problems", "dirty model, andro"),
    "hinge, 60 tasks, the paper's subgradient method alone": ("synthetic", "hinge, d=200 m=60, 40 examples a task"),
}
SOLVERS = {
    "pdlp": "PDLP", "scs": "SCS", "scs_tuned": "SCS, tuned", "scs_tuned_sdp": "SCS, tuned", "ecos": "ECOS", "clarabel": "Clarabel",
    "moreau": "Moreau", "piqp": "PIQP", "qoco": "QOCO", "osqp": "OSQP", "cyanure": "Cyanure", "spams_lars": "SPAMS, LARS",
    "highs_ipx": "HiGHS, IPX", "highs_hipo": "HiGHS, HiPO", "highs_pdlp": "HiGHS, PDLP",
}  # fmt: skip


def test_every_shipped_suite_has_a_published_report_that_is_listed():
    assert {folder.name for folder in PUBLISHED} == set(shipped_suites())
    listed = (ROOT / "reports" / "README.md").read_text()
    for folder in PUBLISHED:
        assert f"({folder.name}/report.md)" in listed


@EACH
def test_a_published_report_is_that_of_its_results(folder):
    assert check_report(folder, suite_report)[0] == [], "make reports writes it again"
    assert re.findall(r"^!\[.*\]\((.*)\)", (folder / "report.md").read_text(), re.MULTILINE) == ["cover.svg"]
    assert (folder / "cover.svg").is_file()


def test_the_findings_in_the_list_are_those_of_the_rows():
    assert [str(fault) for fault in index_faults(ROOT / "reports")] == []


@cache
def winners_of(report):
    return report_tables(read_results(ROOT / "reports" / report), ["winners"])["winners"].astype(object).fillna("")


def name_of(label):
    """Return how a page calls a solver: rivals by name, ours by label, without what a report says after it."""
    return SOLVERS.get(label, label.split()[0])


def seconds_of(found, whose=""):
    """Return seconds with the number of runs that got there, where not all did."""
    reached, runs = found[f"{whose}reached"], found[f"{whose}runs"]
    return format_seconds(float(found[f"{whose}seconds"])) + (f" ({reached} of {runs})" if reached < runs else "")


def ratio_of(found):
    """Return a ratio with its interval, where it has one."""
    value, low, high = (found[name] and format_ratio(float(found[name])).rstrip("x") for name in ("ratio", "ratio_low", "ratio_high"))
    return f"{value} ({low} to {high})" if low else value


@pytest.mark.parametrize(("page", "least"), [("README.md", 5), ("docs/results-at-a-glance.md", 20), ("paper/paper.md", 6)])
def test_a_page_says_what_the_reports_say(page, least):
    number = r"([\d.]+(?: \(\d of \d\))?)"
    row = rf"^\|(.*?)\| (1e-\d) \| (.*?) \| {number} \| (.*?) \| (?:{number}|(not in .*?|-)) \| (.*?) \|$"
    rows = re.findall(row, (ROOT / page).read_text(), re.MULTILINE)
    assert len(rows) >= least
    problem = ""
    for about, gap, winner, seconds, rival, its_seconds, ended, ratio in rows:
        problem = about.strip() or problem
        report, label = PROBLEMS[problem]
        table = winners_of(report)
        (found,) = table[(table["problem"] == label) & (table["target"] == float(gap))].to_dict("records")
        assert (name_of(found["winner"]), seconds_of(found)) == (winner, seconds), (problem, gap)
        if ended:
            in_time = found["rivals"] if found["rivals"].startswith("not in") else "-"  # the page says in words what else there was
            assert (ended, ratio, found["other"]) == (in_time, "-", ""), (problem, gap)
        else:
            assert (name_of(found["other"]), seconds_of(found, "other_")) == (rival, its_seconds), (problem, gap)
            assert ratio_of(found) == ratio, (problem, gap)
            of_report = winners_of(report)
            hardest = of_report[(of_report["target"] == float(gap)) & (of_report["ratio"] != "")]["ratio"].min()
            assert "hardest" not in problem or found["ratio"] == hardest
