"""The papers' experiments in reports/: that each has a report, and that it is that of its rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench_mtl.papers import experiments, rewrite_paper_report
from bench_mtl.papers.store import FILE_NAME
from papers.index import MODULES

REPORTS = Path(__file__).parents[3] / "reports"


def test_every_experiment_has_a_published_report_that_is_listed() -> None:
    assert {path.parent.name for path in REPORTS.glob(f"*/{FILE_NAME}")} == {*experiments(), *MODULES}
    listed = (REPORTS / "README.md").read_text()
    assert [name for name in experiments() if f"({name}/report.md)" not in listed] == []


@pytest.mark.parametrize("is_rendered", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["drawn", "rendered"])
@pytest.mark.parametrize("name", experiments())
def test_a_published_report_is_that_of_its_rows(name: str, is_rendered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn; that they are rendered as well takes as long again, and their pixels are not compared."""
    if not is_rendered:
        monkeypatch.setattr("bench_mtl.papers.report.style.files", lambda figure, forms: dict.fromkeys(forms, b"<svg/>"))
    kept = REPORTS / name
    before = (kept / FILE_NAME).read_bytes()
    shutil.copy(kept / FILE_NAME, tmp_path)
    rewrite_paper_report(tmp_path, name, ["md", "svg"])
    assert (tmp_path / "report.md").read_text() == (kept / "report.md").read_text(), "make reports writes it again"
    assert {path.name for path in tmp_path.rglob("*.svg")} == {path.name for path in kept.rglob("*.svg")}
    assert (tmp_path / FILE_NAME).read_bytes() == before, "a report changed the rows that it is made from"
