"""The papers' experiments in reports/: that each has a report, and that it is that of its rows."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import pytest

from bench_mtl.papers import experiments, rewrite_paper_report
from bench_mtl.papers.store import FILE_NAME

REPORTS = Path(__file__).parents[3] / "reports"


def test_every_experiment_has_a_published_report_that_is_listed() -> None:
    assert {path.parent.name for path in REPORTS.glob(f"*/{FILE_NAME}")} == set(experiments())
    listed = (REPORTS / "README.md").read_text()
    assert [name for name in experiments() if f"({name}/report.md)" not in listed] == []


@pytest.mark.parametrize("name", experiments())
def test_a_published_report_is_that_of_its_rows(name: str, tmp_path: Path) -> None:
    shutil.copy(REPORTS / name / FILE_NAME, tmp_path)
    rewrite_paper_report(tmp_path, name)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.suffix in (".md", ".csv"))
    assert len(made) > 3
    assert filecmp.cmpfiles(tmp_path, REPORTS / name, map(str, made), shallow=False) == ([str(path) for path in made], [], [])
