"""Commands run in a folder of their own, without data of the user's, and make reports without figures, or hardly any report."""

from pathlib import Path

import pytest

from bench_mtl.report.write import Written
from bench_mtl.results import Store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> Path:
    """The current folder, empty. Figures are left out, unless a test has the fixture `drawing`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a stand-in for the report of a run, which takes longer than the run."""

    def said_report(folder: Path) -> Written:
        (folder / "report.md").touch()
        with Store.open(folder) as store:
            return Written((), "", (), tuple(store.statuses()))

    monkeypatch.setattr("bench_mtl.cli.run.said_report", said_report)
