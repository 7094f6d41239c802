"""Commands about results that are there, and `certify`: what they write where, what they refuse, their exit codes."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands import ROOT, SMALL, Command, document, refused

from bench_mtl.results import FILE_NAME, Store

Results = Callable[..., Path]

CONIC = {"solver": "conic", "label": "scs"}
RUNS = [{"seconds": 1.0}, {**CONIC, "seconds": 8.0}, {"seconds": 1.0, "problem": "other"}, {**CONIC, "problem": "other"}]
FAST = [{"seed": seed, "seconds": 1.0 + 0.01 * seed} for seed in range(8)]
SLOW = [{"seed": seed, "seconds": 2.0 + 0.02 * (seed % 3)} for seed in range(8)]
SLOW_ONE = {"environment": {"processor": "slow one", "logical_cores": 2}}


@pytest.fixture
def folder(make_results: Results) -> Path:
    return make_results("a", RUNS)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {FILE_NAME}


@pytest.mark.parametrize(
    ("forms", "names"),
    [
        (["md"], {"report.md"}),
        (["html"], {"report.html"}),
        (["csv", "tex"], {"runs.csv", "samples.csv", "tables/winners.csv", "tables/winners.tex"}),
    ],
    ids=lambda value: "-".join(sorted(value)),
)
def test_a_report_in_some_forms_is_written_elsewhere(command: Command, folder: Path, forms: list[str], names: set[str]) -> None:
    out = Path("far/away").absolute()
    result = command("report", folder, *[word for form in forms for word in ("--format", form)], "--out", out)
    assert (result.code, result.err) == (0, [])
    assert result.out[-1] == f"report: {out / min(names) if len(names) == 1 else out}"
    assert {Path(name).suffix for name in files(out)} == {f".{form}" for form in forms}
    assert names <= files(out)
    assert files(folder) == set()


def test_a_cover_is_shown_and_the_other_figures_are_named(command: Command, folder: Path) -> None:
    out = Path("c")
    forms = [word for form in ("md", "cover", "svg") for word in ("--format", form)]
    assert command("report", folder, *forms, "--out", out).code == 0
    text = (out / "report.md").read_text()
    assert text.count("![") == text.count("](cover.svg)") == text.count("--format svg`.\n") == 1
    drawn, named = set((out / "figures").iterdir()), [out / name for name in re.findall(r"^`(figures/.*?)`: ", text, re.MULTILINE)]
    (shown,) = drawn - {*named}
    assert len(drawn) == len(named) + 1
    assert shown.read_bytes() == (out / "cover.svg").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "a", "--baseline", "ecos"], "unknown solver of --baseline 'ecos': allowed: pg, scs"),
        (["report", "a", "--select", "solver=ec*"], "--select: no run has a solver like ec*: there are pg, scs"),
        (["report", "a", "--out", "file"], "cannot be written"),
        (["report", "a", "--out", "foreign"], "holds file, and neither results nor a report"),
        (["report", "a", "--out", "b"], "holds results of its own"),
        (["report", "."], "2 folders of results, and none itself: give one of them, such as a; --check"),
        (["publish", "a", "--out", "site", "--data-dir", "nowhere", "--instances"], "is not a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused(command: Command, here: Path, make_results: Results, words: list[str], said: str) -> None:
    make_results("a", RUNS)
    make_results("b", [{"problem": "strange", "seconds": 1.0}], targets=(1e-3,))
    (here / "file").write_text("mine")
    (here / "foreign").mkdir()
    (here / "foreign" / "file").write_text("mine")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert said in refused(command(*words))
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_failures_that_were_not_selected_are_not_told(command: Command, make_results: Results) -> None:
    folder = make_results("f", [*RUNS, {**CONIC, "problem": "third", "status": "crashed"}])
    ask = ["report", folder, "--format", "md", "--out", "o"]
    assert command(*ask).code == 1
    assert command(*ask, "--select", "problem=other").code == 0


def test_an_unfinished_suite_is_said(command: Command, folder: Path, rewritten: Callable[..., None]) -> None:
    rewritten(folder, "INSERT OR REPLACE INTO meta VALUES ('cases', '9')")
    assert command("report", folder, "--format", "md", "--out", "u").code == 0
    assert "**Unfinished: 5 cases of the suite have no row yet.**" in Path("u/report.md").read_text()


def test_results_of_two_machines_are_merged_and_told_apart(command: Command, make_results: Results) -> None:
    # each solver on a machine of its own, so that there is no ratio to be had
    a, b = make_results("a", [RUNS[0], *FAST[1:]]), make_results("b", [{**RUNS[1], **SLOW_ONE}, {**FAST[1], **SLOW_ONE}])
    result = command("merge", a, b, "-o", "new/both")
    assert (result.code, result.err) == (0, [])
    assert result.out[:2] == ["new/both: 9 runs of 2 folders", "1 row of cases that a folder before has too: stored as superseded"]
    assert result.out[-3:] == [
        "  quick one, 4 cores, 16.0 GiB", "  slow one, 2 cores, 16.0 GiB", "bench-mtl report new/both writes the report",
    ]  # fmt: skip
    with Store.open(Path("new/both")) as store:
        assert set(store.runs()["solve_seconds"]) == {1.0, 8.0, *(run["seconds"] for run in FAST[1:])}


def test_one_folder_is_copied_without_its_proofs(command: Command, folder: Path) -> None:
    result = command("merge", folder, "-o", "out", "--without-proofs")
    assert result.out == ["out: 4 runs of 1 folder", "bench-mtl report out writes the report"]
    assert command("check", "out").out == ["out: 4 rows, all match their checksums"]


def test_every_folder_is_checked_and_the_worst_counts(command: Command) -> None:
    for name in ("whole", "damaged"):
        Path(name).mkdir()
        shutil.copy(ROOT / "reports" / "quick" / FILE_NAME, name)
    with closing(sqlite3.connect(Path("damaged") / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE run SET solve_seconds = solve_seconds / 2 WHERE id = 3")
        ((rows,),) = connection.execute("SELECT count(*) FROM listing").fetchall()
    Path("file").touch()
    code, out, errors = command("check", "damaged", "whole", "file")
    assert (code, len(errors)) == (1, 1)
    assert out[:2] == ["file: a file, not a folder: skipped", f"damaged: {rows} rows, 1 damaged"]
    assert out[2].startswith("  damaged: row 3 (")
    assert out[3:] == [f"whole: {rows} rows, all match their checksums"]
    assert command("check", "file", "file").code == 2
    dropped = command("check", "nowhere", "damaged", "whole", "--drop", "--json")
    assert (dropped.code, len(dropped.err)) == (2, 1)
    missing, damaged, whole = document(dropped)["folders"]
    assert missing["error"].startswith("no results in nowhere")
    assert (damaged["set_aside"]["rows"], damaged["set_aside"]["listings"], whole["set_aside"]) == (1, 0, None)
    assert command("check", "damaged", "whole").code == 0


def test_what_is_slower_lost_or_of_another_machine_is_said(command: Command, make_results: Results) -> None:
    a, b = make_results("a", FAST), make_results("b", SLOW)
    slower = command("compare", a, b)
    assert (slower.code, slower.err) == (1, [])
    assert "**Regression**: 3 of 3 ratios tested say slower by more than 10 %." in slower.text
    assert command("compare", a, b, "--threshold", "1.5").code == command("compare", b, a).code == 0
    assert "Nothing changed" in command("compare", a, a).text
    lost = command("compare", a, make_results("lost", [*FAST[1:], {"seed": 0, "status": "error"}]))
    assert lost.code == 1
    assert "- verified -> error: 1 (hinge seed 0 | pg)" in lost.text
    assert "Gaps that only one of a pair reached: 3 by A, 0 by B." in lost.text
    other = make_results("other", [{**run, "environment": {"processor": "slow one"}} for run in FAST])
    assert "--anyway" in refused(command("compare", a, other))
    assert command("compare", a, other, "--anyway").code == 0


def test_a_site_is_made_and_contradictions_are_told(command: Command, make_results: Results) -> None:
    Path("papers").mkdir()
    runs = [{"seed": 0, "seconds": 1.0}, {"seed": 0, "seconds": 2.0, "solver": "admm"}]
    result = command("publish", make_results("a", runs), "papers", "--out", "site")
    assert (result.code, result.err) == (0, ["bench-mtl: no results of a suite, left out: papers"])
    assert result.out == ["1 suite, leader boards of 1 problem", "site: site/index.html, 1 instance"]
    told = command("publish", make_results("b", [runs[0], {**runs[1], "optimum": 0.5}]), "--out", "site")
    assert (told.code, told.err) == (1, ["bench-mtl: proven bounds in hand contradict each other"])


MODEL = """
import cvxpy
x = cvxpy.Variable(2, name="x")
problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1])
flat = cvxpy.Problem(cvxpy.Minimize(x[0]), [x[0] + x[1] == 1, x[0] + x[1] <= 1, x >= 0])
twins = cvxpy.Problem(cvxpy.Minimize(x[0]), [x >= cvxpy.Variable(2, name="x"), x >= 0])
"""


def test_a_model_of_a_file_is_enclosed_as_far_as_can_be(command: Command) -> None:
    Path("model.py").write_text(MODEL)
    assert "<= optimum <=" in command("certify", "model.py:problem", "--solver", "ECOS").out[0]
    enclosure = document(command("certify", "model.py:problem", "--json", "--judge", "answer", "--bound", "x=10"))
    assert enclosure["lower"] <= 2.0 <= enclosure["upper"]
    assert enclosure["values"]["x"] == pytest.approx([1.0, 1.0], rel=1e-6)
    assert enclosure["why"][-1] == "taken on trust: |x| <= 10"
    missing = command("certify", "model.py:flat", "--solver", "CLARABEL")
    assert (missing.code, "no interior" in missing.out[-1]) == (1, True)
    assert "two variables of the model have one name" in refused(command("certify", "model.py:twins"))


def test_the_gap_of_a_file_of_coefficients_is_proven_by_any_solver(command: Command, plugins: Path) -> None:
    problem = [*SMALL, "--param", "radius=1"]
    command("solve", "l1inf_hinge", "projected_subgradient", *problem, "--target", "1e-2", "--save", "W.npz")
    result = document(command("certify", "l1inf_hinge", "W.npz", *problem, "--json"))
    assert 0.0 < result["relative_gap"] <= 1e-2
    assert "the objective at the coefficients" in result["why"][0]
    plugged = ["certify", "l1inf_hinge", "W.npz", *problem, "--plugins", str(plugins), "--solver", "reports", "--threads", "1", "--option"]
    assert command(*plugged, "number=3").code == 0
    assert "unknown option of solver 'reports' 'nubmer': did you mean 'number'?" in refused(command(*plugged, "nubmer=3"))
