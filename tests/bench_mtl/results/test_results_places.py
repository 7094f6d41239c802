"""Where runs raised, as rows: stored, read, carried over; files of the schema before have none and stay readable."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import MACHINE, case, fill, outcome, results_bytes, suite
from pyarrow import parquet

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Place, Status
from bench_mtl.results import FILE_NAME, SCHEMA_VERSION, Outcome, Store
from bench_mtl.results.check import check, drop, seal
from bench_mtl.results.digests import ENVIRONMENT, META, put_all
from bench_mtl.results.export import export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge
from bench_mtl.results.schema import PLACE, RUN_PARTS

PLACES = (Place("solvers/mine.py", 31, "Mine.steps", "helped(point)"), Place("forms.py", 7, "helped", "raise ValueError"))


def failed(*places: Place) -> Outcome:
    made = outcome(1, Status.ERROR, "ValueError")
    return replace(made, record=replace(made.record, places=places))


def former(folder: Path) -> Path:
    """Make of the results in a folder what a file of schema 6 holds."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute("DROP TABLE place")
        connection.execute("UPDATE meta SET value = '6' WHERE key = 'schema_version'")
        put_all(connection, (META, ENVIRONMENT, *(part for part in RUN_PARTS if part is not PLACE)))
    return folder


def test_places_are_read_as_they_were_added(tmp_path: Path) -> None:
    fill(tmp_path, {0: failed(*PLACES), 1: outcome(), 2: failed(), 3: failed(PLACES[1])})
    with Store.open(tmp_path) as store:
        assert store.places() == {1: PLACES, 4: PLACES[1:]}
        store.require_whole()
    assert read_results(tmp_path).places == {1: PLACES, 4: PLACES[1:]}


def test_what_is_no_text_is_kept_legibly(tmp_path: Path) -> None:
    fill(tmp_path, {0: failed(Place("\udcff.py", 0, "\x1b[31m", "x = '\0\ud800'"))})
    with Store.open(tmp_path) as store:
        assert store.places() == {1: (Place("\\udcff.py", 0, "\x1b[31m", "x = '\0\\ud800'"),)}


def test_places_of_rows_that_are_superseded_stay_and_are_not_listed(tmp_path: Path) -> None:
    fill(tmp_path, {0: failed(*PLACES)})
    with Store.create(tmp_path, suite()) as store:
        (again,) = store.plan([case(0)], retry_failed=True)
        store.add(again, outcome(), store.add_environment(MACHINE))
        assert store.places() == {}
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM place").fetchone() == (2,)


@pytest.mark.parametrize("change", ["UPDATE place SET line = 32 WHERE number = 0", "DELETE FROM place WHERE number = 1"])
def test_places_that_were_changed_are_refused(tmp_path: Path, change: str) -> None:
    fill(tmp_path, {0: outcome(), 1: failed(*PLACES)})
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute(change)
    with pytest.raises(InputError, match=r"damaged: row 2 \("):
        read_results(tmp_path)
    assert check(Store, tmp_path / FILE_NAME).damaged == ("row 2 (pg on lasso): place",)
    assert drop(Store, tmp_path / FILE_NAME) == (tmp_path / "results-damaged-1.sqlite", 1)
    assert len(read_results(tmp_path).runs) == 1


def test_a_file_of_the_schema_before_is_read_as_it_is(tmp_path: Path) -> None:
    folder = former(fill(tmp_path / "former", {0: failed(*PLACES), 1: outcome()}))
    before = results_bytes(folder)
    with Store.open(folder) as store:
        assert (store.version, store.places(), len(store.runs())) == ("6", {}, 2)
        assert list(store.columns("places")) == ["run_id", "number", "file", "line", "function", "source"]
        store.require_whole()
    assert read_results(folder).places == {}
    assert check(Store, folder / FILE_NAME).damaged == ()
    assert {path.stem: rows for path, rows in export(folder, "parquet", tmp_path / "out").items()}["places"] == 0
    assert results_bytes(folder) == before


def test_a_file_of_the_schema_before_is_gone_on_with(tmp_path: Path) -> None:
    folder = former(fill(tmp_path, {0: outcome()}))
    fill(folder, {1: failed(*PLACES)}, plan=[case(0), case(1)])
    with Store.open(folder) as store:
        assert (store.version, store.places()) == (str(SCHEMA_VERSION), {2: PLACES})
        store.require_whole()


def test_seal_brings_a_file_to_this_schema(tmp_path: Path) -> None:
    folder = former(fill(tmp_path, {0: outcome()}))
    assert seal(Store, folder / FILE_NAME)
    with Store.open(folder) as store:
        assert store.version == str(SCHEMA_VERSION)
    assert not seal(Store, folder / FILE_NAME)


def test_places_are_merged_and_exported(tmp_path: Path) -> None:
    first = former(fill(tmp_path / "first", {0: outcome(), 1: outcome()}))
    second = fill(tmp_path / "second", {2: failed(*PLACES)})
    merge([first, second], tmp_path / "out")
    with Store.open(tmp_path / "out") as store:
        assert store.places() == {3: PLACES}
        store.require_whole()
    files = {path.stem: path for path in export(tmp_path / "out", "parquet")}
    rows = parquet.read_table(files["places"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(3, number, *place) for number, place in enumerate(PLACES)]
