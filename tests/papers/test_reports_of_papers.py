"""Published reports are what their rows give; reports, made and made again; the command."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from papers import report
from papers.__main__ import main
from papers.index import PLACES
from papers.judge import Verdict
from papers.overview import END, START
from papers.published import FOLDER, published

REPORTS = Path(__file__).parents[2] / "reports"

#: The verdicts that are listed, by report: of each kind how many, and all.
LISTED = {
    re.sub(r"\W*([\w-]+).*", r"\1", cells[1]): [int(cell) for cell in cells[3:-1]]
    for line in (REPORTS / "README.md").read_text(encoding="utf-8").partition(START)[2].partition(END)[0].splitlines()
    if (cells := line.split("|"))[-2:-1] and cells[-2].strip().isdigit()
}


#: Of whole seconds each.
LONG = ("chen-ratio", "chen-table2", "chen-table3", "chen-table7", "chen-tasks", "singer-sequential")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else []) for name in PLACES])
def test_a_published_report_and_its_line_in_the_list_are_what_the_rows_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = report.read_folder(REPORTS / name, name)
    monkeypatch.setattr(report, "read_folder", lambda *_, **__: read)
    assert report.differences_of(REPORTS / name) == []
    counts = Counter(each.verdict for each in read[0].judged)
    assert LISTED[name] == [*(counts[verdict] for verdict in Verdict), counts.total()]


def test_the_list_has_every_report_and_their_sums() -> None:
    of_each = {name: counts for name, counts in LISTED.items() if name != "together"}
    assert list(of_each) == list(PLACES)
    assert LISTED["together"] == [sum(counts) for counts in zip(*of_each.values(), strict=True)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_published_numbers_can_be_read(path: Path) -> None:
    for claim in published(path.stem):
        assert claim.where
        assert claim.slack >= 0.0
        assert all(values for values in claim.places.values())
        assert claim.statement or claim.is_number
        assert claim.number is not None or claim.relation not in ("within", "within factor")


def test_reports_are_written_from_their_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"chen-table4": "race", "chen-fig2": "sparse_part"}
    for name in names:
        (tmp_path / name).mkdir()
        shutil.copy(REPORTS / name / "cells.sqlite", tmp_path / name)
    readme = tmp_path / "README.md"
    readme.write_text(f"# Reports\n\n{START}\n\n{END}\n")
    assert main(["report", str(tmp_path)]) == 0
    for name, section in names.items():
        assert (tmp_path / name / "report.md").read_bytes() == (REPORTS / name / "report.md").read_bytes()
        assert list((tmp_path / name).glob(f"*/{section}.*"))
        assert (tmp_path / name / "cover.svg").is_file() == (REPORTS / name / "cover.svg").is_file()
    sums = [sum(counts) for counts in zip(*(LISTED[name] for name in names), strict=True)]
    assert f"\n| together | | {' | '.join(map(str, sums))} |\n\n{END}" in readme.read_text()
    assert main(["report", str(tmp_path), "--check"]) == 0
    (tmp_path / "chen-fig2" / "values.csv").write_text("nothing")
    capsys.readouterr()
    assert main(["report", str(tmp_path / "chen-fig2"), "--check"]) == 1
    assert "-nothing" in capsys.readouterr().out


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert main(["report", str(tmp_path)]) == 2
    assert main(["chen-table2", "--force", "--from", str(tmp_path)]) == 2
    assert main(["chen-table2", "--slots", "0"]) == 2
    (tmp_path / "file").touch()
    assert main(["quattoni-cost", "--out", str(tmp_path / "file")]) == 2
    assert all(line.startswith("error: ") for line in capsys.readouterr().err.splitlines())


def test_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert all(f"\n{name}: " in f"\n{text}" for text in [capsys.readouterr().out] for name in PLACES)
