"""What kept rows say of every claim; reports, made and made again; the command."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from papers.__main__ import main
from papers.index import PLACES
from papers.judge import Verdict
from papers.overview import END, START
from papers.published import FOLDER, published
from papers.report import differences_of, read_folder

REPORTS = Path(__file__).parents[2] / "reports"

#: Reproduced, not reproduced, depends, cannot be known, other data, not run: of all claims, from the rows that are kept.
VERDICTS = {
    "chen-fig2": (1, 0, 2, 1, 0, 0),
    "chen-faces": (0, 0, 0, 1, 30, 0),
    "chen-table4": (6, 0, 61, 41, 0, 1),
    "chen-table2": (3, 14, 35, 38, 0, 0),
    "chen-table3": (2, 6, 11, 11, 60, 0),
    "chen-ratio": (0, 0, 0, 9, 0, 0),
    "chen-tasks": (0, 0, 0, 0, 12, 0),
    "chen-table5": (0, 2, 1, 17, 0, 0),
    "chen-table7": (0, 0, 0, 0, 180, 0),
    "singer-online": (2, 0, 0, 4, 3, 1),
    "singer-sequential": (4, 0, 0, 3, 0, 1),
    "quattoni-report": (0, 0, 0, 0, 18, 0),
    "quattoni-fig1": (6, 4, 0, 8, 0, 0),
    "quattoni-annotation": (0, 0, 0, 3, 46, 2),
    "quattoni-cost": (4, 0, 4, 3, 0, 0),
    "boosting-rivals": (0, 0, 0, 3, 6, 0),
}
#: Of statements on other data: how many hold there, do not, are open; and numbers, which have no reading.
READINGS = {"quattoni-report": (4, 5, 5, 4), "quattoni-annotation": (4, 5, 11, 31)}


@pytest.mark.parametrize("name", PLACES)
def test_every_claim_has_its_verdict(name: str) -> None:
    judged = read_folder(REPORTS / name, name)[0].judged
    counts = Counter(each.verdict for each in judged)
    assert tuple(counts[verdict] for verdict in Verdict) == VERDICTS[name]
    if name in READINGS:
        readings = Counter(each.reading for each in judged)
        assert tuple(readings[reading] for reading in ("holds", "does not hold", "open", "")) == READINGS[name]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_published_numbers_can_be_read(path: Path) -> None:
    for claim in published(path.stem):
        assert claim.where
        assert claim.slack >= 0.0
        assert all(values for values in claim.places.values())
        assert claim.statement or claim.is_number
        assert claim.number is not None or claim.relation not in ("within", "within factor")


def test_a_report_follows_from_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("chen-table4", "chen-fig2"):  # between them they have every kind of table and figure
        (folder := tmp_path / name).mkdir()
        shutil.copy(REPORTS / name / "cells.sqlite", folder)
    readme = tmp_path / "README.md"
    readme.write_text(f"# Reports\n\n{START}\n\n{END}\n")
    assert main(["report", str(tmp_path)]) == 0
    text = (folder / "report.md").read_text()
    assert "![Other deviations of the designs](cover.svg)\n\nAll digits: `tables/designs.csv`" in text
    assert "Figure: `figures/sparse_part.svg`" in text
    assert "| together   |            1 |" in text.partition("## What was run")[0]
    for name, section in (("chen-table4", "race"), ("chen-fig2", "sparse_part")):
        assert (tmp_path / name / "figures" / f"{section}.svg").read_bytes().startswith(b"<?xml")
    assert main(["report", str(folder), "--check"]) == 0
    assert "| together | | 7 | 0 | 63 | 42 | 0 | 1 | 113 |\n\n" + END in readme.read_text()
    (folder / "report.md").write_text(text.replace("The sparse part", "The full part"))
    capsys.readouterr()
    assert main(["report", str(folder), "--check"]) == 1
    assert "The full part" in capsys.readouterr().out


def test_the_list_has_the_verdicts_of_every_report() -> None:
    listed = (REPORTS / "README.md").read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    for name, counts in [*VERDICTS.items(), ("together", tuple(map(sum, zip(*VERDICTS.values(), strict=True))))]:
        (line,) = [line for line in listed.splitlines() if line.startswith((f"| [{name}](", f"| {name} |"))]
        assert tuple(int(cell) for cell in line.split("|")[3:-1]) == (*counts, sum(counts))


def test_a_report_is_checked_without_the_files_that_the_repository_leaves_out(tmp_path: Path) -> None:
    for name in ("cells.sqlite", "report.md"):
        shutil.copy(REPORTS / "chen-table5" / name, tmp_path)
    assert differences_of(tmp_path) == []
    (tmp_path / "values.csv").write_text("nothing")
    assert differences_of(tmp_path)


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert main(["report", str(tmp_path)]) == 2
    assert main(["chen-table2", "--force", "--from", str(tmp_path)]) == 2
    assert all(line.startswith("error: ") for line in capsys.readouterr().err.splitlines())


def test_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert all(f"\n{name}: " in f"\n{text}" for text in [capsys.readouterr().out] for name in PLACES)
