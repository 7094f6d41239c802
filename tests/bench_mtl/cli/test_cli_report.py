"""`bench-mtl report` as a user meets it: what it writes where, what it refuses, its exit codes."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from bench_mtl.results import FILE_NAME

CONIC = {"solver": "conic", "label": "scs"}
RUNS = [{"seconds": 1.0}, {**CONIC, "seconds": 8.0}, {"seconds": 1.0, "problem": "other"}, {**CONIC, "problem": "other"}]


@pytest.fixture
def folder(make_results):
    return make_results("a", RUNS)


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {FILE_NAME}


def test_one_form_elsewhere(command, folder, tmp_path):
    out = tmp_path / "far" / "away"
    result = command("report", folder, "--format", "md", "--out", out)
    assert (result.code, result.err) == (0, [])
    assert result.out[-1] == f"report: {out / 'report.md'}"
    assert files(out) == {"report.md"}
    assert files(folder) == set()
    text = (out / "report.md").read_text()
    assert "![" not in text, "no picture was asked for"


def test_a_cover_is_shown_and_the_other_figures_are_named(command, folder, tmp_path):
    out = tmp_path / "c"
    forms = [word for form in ("md", "cover", "svg") for word in ("--format", form)]
    assert command("report", folder, *forms, "--out", out).code == 0
    text = (out / "report.md").read_text()
    assert text.count("![") == text.count("](cover.svg)") == text.count("--format svg`.\n") == 1
    drawn, named = set((out / "figures").iterdir()), [out / name for name in re.findall(r"^`(figures/.*?)`: ", text, re.MULTILINE)]
    (shown,) = drawn - {*named}
    assert len(drawn) == len(named) + 1
    assert shown.read_bytes() == (out / "cover.svg").read_bytes()


def test_a_page_alone_is_one_file(command, folder, tmp_path):
    assert command("report", folder, "--format", "html", "--out", tmp_path / "h").code == 0
    assert files(tmp_path / "h") == {"report.html"}


def test_tables_alone(command, folder, tmp_path):
    result = command("report", folder, "--format", "csv", "--format", "tex", "--out", tmp_path / "t")
    assert result.out[-1] == f"report: {tmp_path / 't'}"
    assert {Path(name).suffix for name in files(tmp_path / "t")} == {".csv", ".tex"}
    assert {"runs.csv", "samples.csv", "tables/winners.tex"} <= files(tmp_path / "t")


def test_a_target_and_a_selection_are_said_and_hold(command, folder, tmp_path):
    view = ["--target", "1e-3", "--select", "problem=oth*", "--select", "solver=pg"]
    assert command("report", folder, "--format", "md", "--format", "csv", "--out", tmp_path / "v", *view).code == 0
    text = (tmp_path / "v" / "report.md").read_text()
    assert "This is a view of the results: only runs with problem=oth*, solver=pg; targets other than the suite's." in text.replace(
        "\\", ""
    )
    with (tmp_path / "v" / "tables" / "winners.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["problem"], float(row["target"]), row["winner"]) for row in rows] == [("other", 1e-3, "pg")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "docx"], "--format must be one of md, html, csv, tex, parquet, svg, pdf, png, cover, not 'docx'"),
        (["--target", "0"], "--target must be"),
        (["--target", "x"], "'x' is not a valid float"),
        (["--baseline", "ecos"], "--baseline: no solver is called 'ecos': there are pg, scs"),
        (["--select", "solver"], "--select must be KEY=PATTERN"),
        (["--select", "solver=ec*"], "--select: no run has a solver like ec*: there are pg, scs"),
        (["--out", "n" * 300], "cannot be used"),
        (["--out", "file"], "cannot be written"),
        (["--out", "foreign"], "holds file, and neither results nor a report"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(command, folder, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    Path("foreign").mkdir()
    Path("foreign/file").write_text("mine")
    result = command("report", folder, *arguments)
    assert (result.code, result.out) == (2, [])
    assert len(result.err) == 1
    assert words in result.err[0]
    assert files(folder) == set()
    assert Path("file").read_text() == "mine"


def test_of_a_folder_of_reports_it_is_said_what_to_give(command, folder):
    result = command("report", folder.parent)
    assert (result.code, len(result.err)) == (2, 1)
    assert f"holds 1 folder of results, and none itself: give one of them, such as {folder}, or --check" in result.err[0]


def test_failures_that_were_not_selected_are_not_told(command, make_results, tmp_path):
    folder = make_results("f", [*RUNS, {**CONIC, "problem": "third", "status": "crashed"}])
    ask = ["report", folder, "--format", "md", "--out", tmp_path / "o"]
    assert command(*ask).code == 1
    assert command(*ask, "--select", "problem=other").code == 0


def test_a_half_written_database_is_refused_in_a_line(command, folder):
    path = folder / FILE_NAME
    path.write_bytes(path.read_bytes()[:6000])
    result = command("report", folder)
    assert (result.code, len(result.err)) == (2, 1)
    assert files(folder) == set()


def test_an_unfinished_suite_is_said(command, folder, tmp_path, rewritten):
    rewritten(folder, "INSERT OR REPLACE INTO meta VALUES ('cases', '9')")
    assert command("report", folder, "--format", "md", "--out", tmp_path / "u").code == 0
    assert "**Unfinished: 5 cases of the suite have no row yet.**" in (tmp_path / "u" / "report.md").read_text()


def test_merged_results_of_two_machines_are_told_apart(command, make_results, tmp_path):
    # each solver on a machine of its own: there is no ratio to be had
    a = make_results("a", [RUNS[0]])
    b = make_results("b", [{**RUNS[1], "environment": {"processor": "slow one", "logical_cores": 2}}])
    assert command("merge", a, b, "-o", tmp_path / "both").code == 0
    assert command("report", tmp_path / "both", "--format", "md", "--format", "csv").code == 0
    text = (tmp_path / "both" / "report.md").read_text()
    assert (
        "**The runs were made on 2 machines** (machine 1: quick one, 4 cores, 16.0 GiB, Linux x86_64; machine 2: slow one, 2 cores" in text
    )
    assert "faster than" not in text
    with (tmp_path / "both" / "runs.csv").open(newline="") as file:
        assert [row["machine"] for row in csv.DictReader(file)] == ["machine 1", "machine 2"]
    with (tmp_path / "both" / "tables" / "winners.csv").open(newline="") as file:
        assert {row["ratio"] for row in csv.DictReader(file)} == {""}


def test_a_baseline_of_ones_own(command, folder, tmp_path):
    assert command("report", folder, "--baseline", "pg", "--format", "md", "--out", tmp_path / "b").code == 0
    assert "speed-ups against pg" in (tmp_path / "b" / "report.md").read_text()


def test_a_bug_of_the_report_is_no_failed_run(command, folder, monkeypatch):
    monkeypatch.setattr("bench_mtl.report.render.files.markdown", lambda *_: 1 / 0)
    result = command("report", folder, "--format", "md")
    assert result.code == 4
    assert result.err[0].startswith("Traceback")
    assert "ZeroDivisionError" in "".join(result.err)
    assert result.err[-1] == "bench-mtl: this is a bug of bench-mtl and says nothing about the runs; what has finished is stored"
    assert files(folder) == set()
