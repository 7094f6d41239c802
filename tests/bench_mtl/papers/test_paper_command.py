"""`bench-mtl paper` on an experiment of cheap cells: every cell once, resumed, reported."""

from __future__ import annotations

import csv
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import toy_jobs
import toy_state

from bench_mtl.core.errors import InputError
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.source_digest import source_modules
from bench_mtl.papers import CellStore, cells_of, experiment, experiments, rewrite_paper_report
from bench_mtl.papers import index as catalogue
from bench_mtl.papers.cells import PACKAGES
from bench_mtl.papers.published import published

Command = Callable[..., tuple[object, str]]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The experiment `toy`, with nothing wrong yet."""
    monkeypatch.setitem(catalogue._MODULES, "toy", "toy")
    monkeypatch.setitem(sys.modules, "bench_mtl.papers.toy", toy_jobs)
    yield
    for state in (toy_state.failing, toy_state.interrupting, toy_state.computed):
        state.clear()


@pytest.fixture
def paper(command: Callable[..., Any], tmp_path: Path) -> Command:
    """Runs `bench-mtl paper`, cells and all; gives the exit code and what was said."""

    def run(*arguments: str) -> tuple[object, str]:
        result = command("paper", *(arguments or ["toy"]), "--isolation", "inline", "--out", tmp_path / "out")
        return result.code, result.text

    return run


def report(folder: Path) -> str:
    return (folder / "out" / "report.md").read_text()


def test_a_run_and_its_report(paper: Command, tmp_path: Path) -> None:
    code, said = paper("toy", "--scale", "full")
    assert code == 0
    assert "[4/4] number 3, seed 0: inaccurate (nothing to prove)" in said
    assert said.rstrip().endswith("4 inaccurate")
    text = report(tmp_path)
    assert "# Squares\n" in text
    assert "Nobody, 1900. Made by `bench-mtl paper toy --scale full`." in text
    assert "4 of 4 cells are done" in text
    assert re.search(r"^\| numbers +\| 1 +\| 0 +\| 0 +\| 0 +\| 0 +\|$", text, re.MULTILINE)
    assert re.search(r"^\| statements +\| 0 +\| 0 +\| 0 +\| 1 +\| 0 +\|$", text, re.MULTILINE)
    assert re.search(r"^\| sum of squares +\| 14 +\| 14.0 +\| \+0 +\| reproduced +\| 1 +\|\n\n1. by hand$", text, re.MULTILINE)
    assert "the page is torn \\| here" in text
    assert "Every cell that was run has one." in text
    assert "missing" not in text
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>Squares</h1>" in page
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == re.findall(r"<h2>(.*?)</h2>", page)
    assert "the page is torn | here" in page
    assert "All digits" not in page
    with (tmp_path / "out" / "comparison.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["published_value"], first["our_value"], first["difference"]) == ("14", "14", "0")
    assert second["difference"] == ""
    with (tmp_path / "out" / "tables" / "squares.csv").open() as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["0", "1", "4", "9"]


def test_a_second_run_computes_nothing_and_the_full_scale_takes_over_the_small_one(paper: Command) -> None:
    assert paper()[0] == 0
    assert "3 of 3 cells are done already" in paper()[1]
    assert toy_state.computed == [0, 1, 2]
    assert paper("toy", "--scale", "full")[0] == 0
    assert toy_state.computed == [0, 1, 2, 3]
    paper("toy", "--force")
    assert toy_state.computed == [0, 1, 2, 3, 0, 1, 2]


def test_an_interrupted_run_goes_on(paper: Command, tmp_path: Path) -> None:
    toy_state.interrupting.add(1)
    code, said = paper()
    assert code == 130
    assert said.rstrip().endswith("interrupted; what has finished is stored, the same command goes on from there")
    toy_state.interrupting.clear()
    assert paper()[0] == 0
    assert toy_state.computed == [0, 1, 2]
    assert "3 of 3 cells are done" in report(tmp_path)


def test_a_failure_is_a_row_and_is_run_again_on_request(paper: Command, tmp_path: Path) -> None:
    toy_state.failing.add(1)
    code, said = paper()
    assert code == 1
    assert "2 inaccurate, 1 error" in said
    assert "| number 1, seed 0 | error    | ValueError: 1 is unlucky |" in report(tmp_path)
    toy_state.failing.clear()
    assert paper()[0] == 1
    assert paper("toy", "--retry-failed")[0] == 0
    assert toy_state.computed == [0, 1, 2, 1]
    with sqlite3.connect(tmp_path / "out" / "cells.sqlite") as connection:
        assert connection.execute("SELECT count(*), sum(superseded) FROM cell").fetchone() == (4, 1)
    connection.close()


def test_when_everything_fails_there_is_still_a_report(paper: Command, tmp_path: Path) -> None:
    toy_state.failing.update(range(3))
    assert paper()[0] == 1
    assert "3 of 3 cells are done" in report(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["toys"], "unknown experiment 'toys': did you mean 'toy'? allowed: toy, "),
        (["toy", "--scale", "huge"], "'huge' is not one of 'small', 'full'"),
        (["toy", "--slots", "0"], "--slots must be a whole number of at least 1, not 0"),
        (["toy", "--slots", "2"], "--isolation inline runs one case at a time"),
    ],
    ids=["name", "scale", "slots", "inline slots"],
)
def test_bad_words_are_refused_before_anything_is_written(paper: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    code, heard = paper(*arguments)
    assert code == 2
    assert said in heard
    assert not (tmp_path / "out").exists()


def test_folders_that_hold_something_else_are_refused(paper: Command, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "report.md").write_text("mine")
    code, said = paper()
    assert code == 2
    assert "holds report.md but no cells.sqlite: the report would overwrite it" in said
    assert report(tmp_path) == "mine"
    (folder / "report.md").unlink()
    (folder / "cells.sqlite").write_bytes(b"no database at all, " * 50)
    code, said = paper()
    assert code == 2
    assert "not a readable results file" in said
    (folder / "cells.sqlite").unlink()
    with CellStore.create(folder, "another"):
        assert "another run is using this folder" in paper()[1]
    assert "already holds the cells of 'another'" in paper()[1]


def test_a_report_written_again(paper: Command, command: Callable[..., Any], tmp_path: Path, rewritten: Callable[..., None]) -> None:
    """Of the rows there are, also where the code has changed since."""
    paper("toy", "--scale", "full")
    folder = tmp_path / "out"
    before = report(tmp_path)
    (folder / "report.md").unlink()
    rewritten(folder, "UPDATE cell SET key = 'old ' || key")

    def written(*words: str) -> tuple[object, str]:
        result = command("report", folder, *words)
        return result.code, result.text

    assert written() == (0, f"report: {folder / 'report.md'}")
    after = report(tmp_path).replace(
        "Written from rows that were there: that one version of the code made all of them, or that this one would make the\nsame, is not "
        "checked.\n\n",
        "",
    )
    assert after == before
    assert written("--format", "md")[0] == 0
    assert "All digits" not in report(tmp_path)
    (folder / "report.html").unlink()
    assert written("--format", "html") == (0, f"report: {folder / 'report.html'}")
    assert written("--format", "csv") == (0, f"report: {folder}")
    code, said = written("--baseline", "pdhg")
    assert code == 2
    assert "holds the cells of a paper's experiment, 'toy': its report has no option but --format" in said
    rewritten(folder, "DELETE FROM meta WHERE key = 'experiment'")
    assert "does not say of which experiment it has cells" in written()[1]


def test_a_report_of_the_small_scale_written_again(paper: Command, tmp_path: Path) -> None:
    paper("toy", "--scale", "small")
    rewrite_paper_report(tmp_path / "out", "toy")
    assert "--scale small`" in report(tmp_path)


class TestKeys:
    """A row is found again as long as a new run would give the same."""

    @pytest.mark.parametrize("name", experiments())
    def test_of_the_code(self, name: str) -> None:
        """What `compute` imports, also inside functions, and nothing that only reads rows or writes reports."""
        compute = experiment(name).compute
        modules = set(source_modules(compute, PACKAGES))
        assert compute.__module__ in modules
        assert (
            "bench_mtl.data.catalogue" in modules
            or name in ("quattoni-fig1", "quattoni-cost")
            or "bench_mtl.data.synthetic.sparse_low_rank" in modules
            or (name == "singer-sequential" and "bench_mtl.data.synthetic.market" in modules)
        )
        if compute.__module__ == "bench_mtl.papers.chen.protocol":
            assert {f"bench_mtl.estimators.{each}" for each in ("sparse_low_rank", "linear", "fitting", "precisions")} <= modules
            assert {"bench_mtl.metrics.ranking", "bench_mtl.papers.chen.learners"} <= modules
        words = (
            "experiment",
            "index",
            "published",
            "report",
            "store",
            "summaries",
            "chen.about",
            "chen.curves",
            "chen.scores",
            "chen.sensitivity",
            "quattoni.annotation_sections",
            "quattoni.cost_fits",
            "quattoni.cost_sections",
            "quattoni.report2008_sections",
            "quattoni.report2008_verdicts",
        )
        assert not modules & {f"bench_mtl.papers.{each}" for each in words}
        assert not [module for module in modules if module.startswith(("bench_mtl.report", "bench_mtl.cli", "bench_mtl.results"))]

    @pytest.mark.parametrize("name", [name for name in experiments() if experiment(name).cells_of])
    def test_of_shared_cells(self, name: str) -> None:
        """A worker computes them with the other experiment's `compute`, and under its name."""
        own = experiment(name)
        other = experiment(own.cells_of)
        assert (own.compute, own.uses, own.limits, own.data) == (other.compute, other.uses, other.limits, other.data)
        assert other.cells_of == other.name

    def test_of_a_changed_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        registry = load_registry()
        (first, *_), compute = cells_of(toy_jobs.EXPERIMENT, "small", registry, None), toy_jobs.EXPERIMENT.compute
        digests = {(compute, PACKAGES): "another"}
        monkeypatch.setattr("bench_mtl.papers.cells.source_digest", lambda thing, packages=(): digests[thing, packages])
        assert cells_of(toy_jobs.EXPERIMENT, "small", registry, None)[0].key != first.key

    @pytest.mark.parametrize("name", experiments())
    def test_of_the_cells(self, name: str, data_dir: Path) -> None:
        registry = load_registry()
        chosen = experiment(name)
        small, full = ({cell.key for cell in cells_of(chosen, scale, registry, data_dir)} for scale in ("small", "full"))
        assert len(full) == len(chosen.scale("full").grid)
        assert small < full
        assert small == {cell.key for cell in cells_of(chosen, "small", registry, data_dir)}

    def test_of_what_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        with pytest.raises(InputError, match="unknown problem or solver 'pdgh': did you mean 'pdhg'"):
            cells_of(replace(toy_jobs.EXPERIMENT, uses=("pdgh",)), "small", load_registry(), None)


def test_the_published_numbers_are_found_by_name() -> None:
    assert published("chen2012_table4")[0]["solver"] == "projected_gradient"
    with pytest.raises(InputError, match=r"nobody\.csv are missing"):
        published("nobody")


def test_store_refuses_what_no_row_can_hold(tmp_path: Path) -> None:
    from bench_mtl.core.types import Record, Status
    from bench_mtl.results import Outcome

    cell = cells_of(toy_jobs.EXPERIMENT, "small", load_registry(), None)[0]
    odd: Any = Outcome(Record(Status.VERIFIED, ""), {}, (), "", found={"model": object()})
    with CellStore.create(tmp_path / "rows", "toy") as store:
        with pytest.raises(TypeError, match="a cell has found object"):
            store.add(cell, odd, 1)
        assert store.finished() == set()


def test_what_a_cell_has_found_is_compressed_where_it_is_long(tmp_path: Path) -> None:
    from bench_mtl.core.types import Record, Status
    from bench_mtl.results import Outcome

    cells = cells_of(toy_jobs.EXPERIMENT, "full", load_registry(), None)[:2]
    values = [{"curve": [1.0, 2.5]}, {"curve": [0.5, 0.25] * 500}]
    with CellStore.create(tmp_path / "rows", "toy") as store:
        environment = store.add_environment({})
        for cell, found in zip(cells, values, strict=True):
            store.add(cell, Outcome(Record(Status.VERIFIED, ""), {}, (), "", found=found), environment)
        assert [row["curve"] for row in store.rows(cells)] == [found["curve"] for found in values]
    with closing(sqlite3.connect(tmp_path / "rows" / "cells.sqlite")) as connection:
        (text, short), (blob, long) = connection.execute("SELECT typeof(found), length(found) FROM cell ORDER BY id").fetchall()
    assert (text, blob) == ("text", "blob")
    assert long < 100 < 1000 < len(str(values[1]))
    assert short == len(str(values[0]))


def test_an_experiment_takes_over_the_cells_that_it_shares_with_another(
    paper: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing = SimpleNamespace(EXPERIMENT=replace(toy_jobs.EXPERIMENT, name="sharing", cells_of="toy"))
    own = SimpleNamespace(EXPERIMENT=replace(toy_jobs.EXPERIMENT, name="own"))
    for name, module in (("sharing", sharing), ("own", own)):
        monkeypatch.setitem(catalogue._MODULES, name, name)
        monkeypatch.setitem(sys.modules, f"bench_mtl.papers.{name}", module)
    assert paper()[0] == 0
    other = tmp_path / "other"
    (tmp_path / "out").rename(other)
    toy_state.computed.clear()
    code, said = paper("sharing", "--scale", "full", "--from", str(other))
    assert code == 0
    assert f"3 cells taken over from {other}" in said
    assert toy_state.computed == [3]
    assert "4 of 4 cells are done" in report(tmp_path)
    with CellStore.open(other, "toy") as theirs, CellStore.open(tmp_path / "out", "sharing") as ours:
        first, again = theirs.query("SELECT * FROM environment"), ours.query("SELECT * FROM environment WHERE id = 1")
        assert list(first) == list(again)
        columns = "key, settings, status, reason, found, seconds, wall_seconds, peak_memory_mib"
        assert [*theirs.query(f"SELECT {columns} FROM cell")] == [*ours.query(f"SELECT {columns} FROM cell WHERE id <= 3")]
    (tmp_path / "out").rename(tmp_path / "kept")
    assert f"0 cells taken over from {other}" in paper("own", "--from", str(other))[1]
    (tmp_path / "out").rename(tmp_path / "again")
    assert paper("sharing", "--from", str(tmp_path / "nothing"))[0] == 2
    assert not (tmp_path / "out").exists()
    assert paper("sharing", "--force", "--from", str(other))[0] == 2


def test_a_cell_that_failed_is_not_taken_over(paper: Command, tmp_path: Path) -> None:
    toy_state.failing.add(1)
    assert paper()[0] == 1
    (tmp_path / "out").rename(tmp_path / "other")
    toy_state.failing.clear()
    code, said = paper("toy", "--from", str(tmp_path / "other"))
    assert code == 0
    assert "2 cells taken over" in said
