"""The papers' experiments in reports/: that each has a report, and that it is that of its rows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from published_reports import EACH, REPORTS

from bench_mtl.papers import experiments, rewrite_paper_report
from bench_mtl.papers.store import FILE_NAME
from papers.index import MODULES


def test_every_experiment_has_a_published_report_that_is_listed() -> None:
    assert {path.parent.name for path in REPORTS.glob(f"*/{FILE_NAME}")} == {*experiments(), *MODULES}
    listed = (REPORTS / "README.md").read_text()
    assert [name for name in experiments() if f"({name}/report.md)" not in listed] == []


@pytest.mark.parametrize("is_rendered", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["drawn", "rendered"])
@EACH
def test_a_published_report_is_that_of_its_rows(name: str, is_rendered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn; that they are rendered as well takes as long again, and their pixels are not compared."""
    if not is_rendered:
        monkeypatch.setattr("bench_mtl.papers.report.style.files", lambda figure, forms: dict.fromkeys(forms, b"<svg/>"))
    kept = REPORTS / name
    before = (kept / FILE_NAME).read_bytes()
    shutil.copy(kept / FILE_NAME, tmp_path)
    rewrite_paper_report(tmp_path, name, ["md", "svg", "cover"])
    text = (kept / "report.md").read_text()
    assert (tmp_path / "report.md").read_text() == text, "make reports writes it again"
    assert {path.name for path in tmp_path.glob("*.svg")} == {path.name for path in kept.glob("*.svg")}
    drawn = [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.glob("figures/*.svg"))]
    named = re.findall(r"^Figure: `(.*)`$", text, re.MULTILINE)
    assert set(named) < set(drawn) if drawn else not named
    assert len(drawn) == len(named) + text.count("](cover.svg)")
    assert (tmp_path / FILE_NAME).read_bytes() == before, "a report changed the rows that it is made from"
