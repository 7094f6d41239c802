"""The page of the papers: what is found of each, from rows that are published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.papers import Verdict
from bench_mtl.papers.report import findings_in

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.mark.usefixtures("undrawn")
def test_a_page_links_to_reports_and_counts_their_readings(command: Callable[..., Any], tmp_path: Path) -> None:
    name = "chen-table5"
    (tmp_path / name).mkdir()
    shutil.copy(REPORTS / name / "cells.sqlite", tmp_path / name)
    (tmp_path / "other").mkdir()
    result = command("report", tmp_path, "--papers")
    assert result.code == 0, result.text
    page = (tmp_path / "papers.html").read_text(encoding="utf-8")
    assert f'href="{name}/report.html"' in page
    assert (tmp_path / name / "report.html").is_file()
    verdicts = [each.verdict for each in findings_in(tmp_path / name, name).comparisons]
    assert verdicts
    for verdict in set(verdicts) - {Verdict.UNKNOWN, Verdict.NOT_RUN}:
        assert str(verdict) in page


def test_a_folder_without_papers_and_other_options_are_named(command: Callable[..., Any], tmp_path: Path) -> None:
    result = command("report", tmp_path, "--papers")
    assert result.code == 2
    assert "no folder in" in result.text
    result = command("report", tmp_path, "--papers", "--index")
    assert result.code == 2
    assert "--papers goes with no other option" in result.text
