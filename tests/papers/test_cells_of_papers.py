"""Cells: run by the runner, kept as rows, run again where they failed, taken over, damaged."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench_mtl import InputError, Limits, load_registry
from bench_mtl.engine.source_digest import source_modules
from bench_mtl.runner import Found, InlineExecutor, Setting, run_cases
from papers import cells as module
from papers.cells import Cell, cells_of
from papers.experiment import Experiment, Scale, grid
from papers.index import PLACES, experiment
from papers.store import FILE_NAME, CellStore

CURVE = [0.5, 0.25] * 500


def compute(settings: Any, data_dir: Path | None) -> Found:
    """Fail for the third, and find its square and a long curve for all others."""
    if settings["size"] == 3:
        raise ValueError("three is too much")
    return Found({"square": settings["size"] ** 2, "curve": CURVE}, "verified", "by arithmetic")


TOY = Experiment(
    "toy", "Toy", "Somebody 2001", "", {"small": Scale(grid(1, size=(1, 2)), ""), "full": Scale(grid(2, size=(1, 2, 3)), "")},
    compute, lambda rows: rows, (), limits=Limits(seconds=None, wall_seconds=60.0, memory_gib=8.0),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "experiment", lambda name: TOY)


def cells(scale: str = "full") -> list[Cell]:
    return cells_of(TOY, scale, load_registry(), None)


def run_all(folder: Path, scale: str = "full") -> None:
    with CellStore(folder, "toy", writes=True) as store, InlineExecutor(Setting(1, None, None)) as executor:
        run_cases(store.plan(cells(scale)), store, executor=executor)


def test_a_cell_is_run_once(tmp_path: Path) -> None:
    run_all(tmp_path, "small")
    with CellStore(tmp_path, "toy", writes=True) as store:
        assert len(store.plan(cells())) == 4  # full has what small has done
    run_all(tmp_path)
    with CellStore(tmp_path, "toy", writes=True) as store:
        rows = store.rows(TOY.scale("full").grid)
        assert [row.get("square") for row in rows] == [1, 4, None, 1, 4, None]
        assert rows[0]["curve"] == CURVE
        assert [row["status"] for row in rows].count("error") == 2
        assert store.plan(cells()) == []
        assert [cell.settings["size"] for cell in store.plan(cells(), retry_failed=True)] == [3, 3]
        assert len(store.plan(cells(), force=True)) == 6
        assert len(store.environments({row["environment_id"] for row in rows})) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE_NAME]
    assert (tmp_path / FILE_NAME).stat().st_size < 100_000, "what is long is compressed"


def test_cells_of_another_folder_are_taken_over_but_not_failures(tmp_path: Path) -> None:
    run_all(tmp_path / "one")
    with CellStore(tmp_path / "two", "toy", writes=True) as store:
        assert store.take_over(cells(), tmp_path / "one") == 4
        assert len(store.plan(cells())) == 2


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no cells"):
        CellStore(tmp_path)
    run_all(tmp_path, "small")
    with pytest.raises(InputError, match="already holds the cells of 'toy'"):
        CellStore(tmp_path, "other", writes=True)
    with CellStore(tmp_path, "toy", writes=True), pytest.raises(InputError, match="another run is using"):
        CellStore(tmp_path, "toy", writes=True)
    for damage in ("UPDATE cell SET reason = 'by magic'", "DELETE FROM row_digest"):
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
            connection.execute(damage)
        with CellStore(tmp_path) as store, pytest.raises(InputError, match="damaged"):
            store.rows(TOY.scale("small").grid)
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
            connection.execute("UPDATE cell SET reason = 'by arithmetic'")
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match="cannot be read"):
        CellStore(tmp_path)


@pytest.mark.parametrize("name", PLACES)
def test_a_key_holds_the_code_that_computes_and_none_that_reads(name: str) -> None:
    chosen = experiment(name)
    assert chosen.name == name
    modules = set(source_modules(chosen.compute, module.PACKAGES))
    assert chosen.compute.__module__ in modules
    assert modules & {f"bench_mtl.{each}" for each in ("data.catalogue", "data.synthetic.linear", "model.task_data")}
    readers = {"experiment", "index", "published", "report", "store", "judge", "tables", "figures", "values"}
    readers |= {place.partition(":")[0] for place in PLACES.values()}
    assert not modules & {f"papers.{each}" for each in readers}
    assert not [each for each in modules if each.startswith(("bench_mtl.report", "bench_mtl.cli", "bench_mtl.results"))]
    if chosen.cells_of:  # a worker computes them with the other experiment's `compute`, and under its name
        other = experiment(chosen.cells_of)
        assert (chosen.compute, chosen.uses, chosen.limits, chosen.data) == (other.compute, other.uses, other.limits, other.data)
        assert other.cells_of in ("", other.name)


@pytest.mark.parametrize("name", PLACES)
def test_the_full_scale_has_the_cells_of_the_small_one(name: str, data_dir: Path) -> None:
    small, full = (cells_of(experiment(name), scale, load_registry(), data_dir) for scale in ("small", "full"))
    keys = {cell.key for cell in full}
    assert all(cell.code for cell in full)
    assert len(keys) == len(experiment(name).scale("full").grid)
    assert {cell.key for cell in small} < keys


def test_keys_hold_all_that_may_change_an_outcome() -> None:
    one, *others = cells()
    assert len({one.key, *(other.key for other in others)}) == 6
    assert Cell(one.experiment, one.settings, one.limits, code="other").key != one.key
