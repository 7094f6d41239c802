"""The history of a suite: which results are compared, on which cases."""

from __future__ import annotations

from pathlib import Path

import pytest
from shown_results import Page, fill, run

from bench_mtl.publish.history_pages import history_page, steps
from bench_mtl.publish.sources import read_sources, versions_of


def results(folder: Path, factor: float, day: int, instances: int = 6, **machine: str) -> Path:
    runs = [run("pg", factor, 2.0 * factor, seed=seed) for seed in range(instances)]
    return fill(folder, *runs, started=f"2026-01-{day:02d}T00:00:00", **machine)


def test_ratios_are_of_the_cases_that_all_results_have(tmp_path: Path) -> None:
    folders = [results(tmp_path / "c", 4.0, 3, commit="c"), results(tmp_path / "a", 1.0, 1, commit="a"), results(tmp_path / "b", 2.0, 2, 5)]
    (versions,) = versions_of(read_sources(folders)).values()
    assert [version.folder.name for version in versions] == ["a", "b", "c"]
    found = steps(versions)
    assert [(step.old.slug, step.new.slug) for step in found] == [("hand", "hand-2"), ("hand-2", "hand-3"), ("hand", "hand-3")]
    for step, ratio in zip(found, (2.0, 2.0, 4.0), strict=True):
        assert step.comparison is not None
        assert step.comparison.pairs == 5, "one instance is not in all of them"
        assert [cell.ratio and cell.ratio.value for cell in step.comparison.cells] == pytest.approx([ratio, ratio])
    page = Page(history_page(versions))
    assert "From hand (2026-01-01) to hand-2 (2026-01-02)" in page.text
    assert "Of these only cases that all 3 results have." in page.text
    assert "slower" in page.text


def test_times_of_different_machines_are_not_compared(tmp_path: Path) -> None:
    folders = [results(tmp_path / "a", 1.0, 1), results(tmp_path / "b", 2.0, 2, processor="slow one")]
    (versions,) = versions_of(read_sources(folders)).values()
    (step,) = steps(versions)
    assert step.comparison is None
    page = Page(history_page(versions))
    assert "Not compared: they were made under different conditions: processor (quick one in A, slow one in B)." in page.text
    assert str(tmp_path) not in page.text


def test_results_without_a_common_case(tmp_path: Path) -> None:
    folders = [results(tmp_path / "a", 1.0, 1), fill(tmp_path / "b", run("admm", 1.0, 2.0), started="2026-02-02T00:00:00")]
    (versions,) = versions_of(read_sources(folders)).values()
    assert "Not compared: they have no case in common." in Page(history_page(versions)).text
