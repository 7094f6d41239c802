"""The page of the papers: what is found of each, from rows that are published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_mtl.cli import main
from bench_mtl.papers import Verdict
from bench_mtl.papers.report import findings_in

Command = Callable[..., tuple[object, str]]

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `bench-mtl report` in this process; gives the exit code and what was said."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("bench_mtl.cli._end_soon", lambda code: None)

    def run(*arguments: object) -> tuple[object, str]:
        monkeypatch.setattr("sys.argv", ["bench-mtl", "report", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return end.value.code, said.out + said.err

    return run


def test_a_page_links_to_reports_and_counts_their_readings(report: Command, tmp_path: Path) -> None:
    name = "singer-sequential"
    (tmp_path / name).mkdir()
    shutil.copy(REPORTS / name / "cells.sqlite", tmp_path / name)
    (tmp_path / "other").mkdir()
    code, said = report(tmp_path, "--papers")
    assert code == 0, said
    page = (tmp_path / "papers.html").read_text(encoding="utf-8")
    assert f'href="{name}/report.html"' in page
    assert (tmp_path / name / "report.html").is_file()
    verdicts = [each.verdict for each in findings_in(tmp_path / name, name).comparisons]
    assert verdicts
    for verdict in set(verdicts) - {Verdict.UNKNOWN, Verdict.NOT_RUN}:
        assert str(verdict) in page


def test_a_folder_without_papers_and_other_options_are_named(report: Command, tmp_path: Path) -> None:
    code, said = report(tmp_path, "--papers")
    assert code == 2
    assert "no folder in" in said
    code, said = report(tmp_path, "--papers", "--index")
    assert code == 2
    assert "--papers goes with no other option" in said
