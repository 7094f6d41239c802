"""Damage to a results file: nothing that was damaged is read as another result."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import case, fill, finished_in, outcome, resealed, results_bytes, suite

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Certificate, Sample
from bench_mtl.results import FILE_NAME, Outcome, Store
from bench_mtl.results.check import check, drop, seal
from bench_mtl.results.export import export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge


def measured(number: int) -> Outcome:
    samples = [
        Sample(0.1 * i, i, 1.0 + i, Certificate(1.0 + number, 1.0 / (i + 3.0), 0.0), measures=(("error", 0.5 / (i + 1)), ("zeros", 3.0)))
        for i in range(6)
    ]
    return outcome(samples, solution={"W": np.arange(40.0).reshape(8, 5) * (number + 1)})


def varied(folder: Path, runs: int = 12) -> Path:
    """Results of two machines, some of them superseded, with measures, patterns and texts that are not ASCII."""
    fill(folder, {number: measured(number) for number in range(runs)})
    with Store.create(folder, suite()) as store:
        cases = [case(number, "Häuser ∑", "pg") for number in range(runs)]
        waiting = store.plan(cases[: runs // 3], force=True)
        environment = store.add_environment({"processor": "other", "logical_cores": 2})
        for number in range(len(waiting)):
            store.add(cases[number], replace(measured(number + 7), notes=("Grüße",)), environment)
        assert store.plan(cases) == []
    return folder


def everything(folder: Path) -> list[str]:
    """All that is read, as text that tells any two of them apart."""
    with Store.open(folder) as store, store.snapshot():
        tables = [store.runs(), store.samples(), store.measures()]
        patterns = [(p.run_id, p.part, p.nonzeros, p.rank, p.mask.tolist()) for p in store.patterns()]
        rest: list[Any] = [store.meta(), store.environments(), store.statuses(), store.durations(), sorted(store.finished()), patterns]
        chunks = [[str(row) for rows in store.chunks(name, 100) for row in rows] for name in ("runs", "environments", "patterns")]
    return [*(table.to_json(double_precision=15, orient="split") + str(table.dtypes.to_dict()) for table in tables),
            *(str(table.select_dtypes("number").to_numpy().tobytes()) for table in tables),
            json.dumps(rest, default=str), *map(str, chunks)]  # fmt: skip


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """`whole` with one bit, or one byte, that is another."""
    content = bytearray(whole)
    place = rng.randrange(len(content))
    content[place] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
    return bytes(content)


def require_none_misread(folder: Path, seed: int, times: int) -> int:
    """Damage the file as often as `times`; return how often it was refused."""
    whole, undamaged = results_bytes(folder), everything(folder)
    rng, said = random.Random(seed), []
    for _ in range(times):
        (folder / FILE_NAME).write_bytes(damaged(whole, rng))
        try:
            read = everything(folder)
        except InputError as error:
            said.append(str(error))
        else:
            assert read == undamaged
    (folder / FILE_NAME).write_bytes(whole)
    assert all(str(folder / FILE_NAME) in text and "\n" not in text for text in said)
    return len(said)


def test_what_is_damaged_is_refused_or_read_as_it_was(tmp_path: Path) -> None:
    assert require_none_misread(varied(tmp_path), 0, 40) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_four_hundred_damages_are_refused_or_read_as_they_were(tmp_path: Path, seed: int) -> None:
    assert require_none_misread(varied(tmp_path, 40), seed, 100) > 30


CHANGES = {
    "a gap": "UPDATE run SET relative_gap = 1e-9 WHERE id = 2",
    "the last digit of a time": "UPDATE sample SET seconds = seconds * (1 + 3e-16) WHERE run_id = 2 AND number = 3",
    "a status": "UPDATE run SET status = 'timeout' WHERE id = 2",
    "a label": "UPDATE run SET solver_label = 'qg' WHERE id = 2",
    "a sample that is gone": "DELETE FROM sample WHERE run_id = 2 AND number = 5",
    "a sample of another run": "UPDATE sample SET run_id = 3, number = 77 WHERE run_id = 2 AND number = 5",
    "a measure": "UPDATE measure SET value = 0.25 WHERE run_id = 2 AND number = 3",
    "a pattern": "UPDATE pattern SET nonzeros = nonzeros - 1 WHERE run_id = 2",
    "a row that is gone": "DELETE FROM run WHERE id = 2",
    "a row that nobody lists any more": "UPDATE run SET listed = 0 WHERE id = 2",
    "a row that is gone with its checksums": "DELETE FROM digest WHERE id = 2 AND part <> 'environment'; DELETE FROM run WHERE id = 2",
    "an environment": "UPDATE environment SET description = replace(description, 'quick', 'quack')",
    "the targets": "UPDATE meta SET value = '[0.1]' WHERE key = 'targets'",
    "a checksum": "UPDATE digest SET digest = zeroblob(16) WHERE part = 'run' AND id = 2",
    "the version": "UPDATE meta SET value = '4' WHERE key = 'schema_version'",
    "text that is no UTF-8": "UPDATE run SET reason = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "text for a number": "UPDATE sample SET seconds = 'soon' WHERE run_id = 2 AND number = 1",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    return results_bytes(fill(folder, {number: measured(number) for number in range(4)}))


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_refused_by_name_wherever_it_is_read(tmp_path: Path, whole: bytes, what: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(whole)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.executescript(CHANGES[what])
    path = str(tmp_path / FILE_NAME)
    named = "damaged: row 2 (" in refusal(lambda: read_results(tmp_path))
    assert named or what in (
        "a row that is gone", "a row that is gone with its checksums", "an environment", "the targets", "the version"
    )  # fmt: skip
    fill(tmp_path / "other", [9])
    for action in (
        lambda: read_results(tmp_path),
        lambda: merge([tmp_path / "other", tmp_path], tmp_path / "out"),
        lambda: export(tmp_path, "csv"),
        lambda: fill(tmp_path, [7]),
    ):
        said = refusal(action)
        assert path in said
        assert "\n" not in said
    assert not (tmp_path / "out").exists()


def refusal(action: Any) -> str:
    with pytest.raises(InputError) as error:
        action()
    return str(error.value)


def test_what_changes_with_the_plan_is_whole_again(tmp_path: Path) -> None:
    varied(tmp_path)
    with Store.open(tmp_path) as store:
        store.require_whole()
        assert store.damage() == []
        assert store.is_sealed
    resealed(tmp_path)
    assert len(finished_in(tmp_path)) == 12


# Check, drop, seal -------------------------------------------------------------------------------------------------------------------

FORMER = (
    *(f"DROP TABLE {table}" for table in ("digest", "started", "proof", "rung", "place")),
    "UPDATE meta SET value = '4' WHERE key = 'schema_version'",
)


def changed(folder: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return folder


def test_what_is_damaged_is_listed_and_set_aside_and_run_anew(tmp_path: Path) -> None:
    folder = varied(tmp_path / "a")
    before = everything(folder)
    assert (check(Store, folder / FILE_NAME).rows, check(Store, folder / FILE_NAME).damaged) == (16, ())
    assert drop(Store, folder / FILE_NAME) is None
    changed(folder, "UPDATE sample SET primal = 0.5 WHERE run_id = 7 AND number = 2", "UPDATE run SET status = 'wrong' WHERE id = 9")
    bytes_of_damaged = results_bytes(folder)
    found = check(Store, folder / FILE_NAME)
    assert found.damaged == ("row 9 (pg on Häuser ∑): the row itself", "row 7 (pg on Häuser ∑): sample")
    aside, rows = drop(Store, folder / FILE_NAME) or (None, 0)
    assert (aside, rows) == (folder / "results-damaged-1.sqlite", 2)
    assert aside.read_bytes() == bytes_of_damaged
    assert check(Store, folder / FILE_NAME).damaged == ()
    assert len(finished_in(folder)) == 10
    cases = [case(number, "Häuser ∑", "pg") for number in range(12)]
    with Store.create(folder, suite()) as store:
        waiting = store.plan(cases)
        assert [each.options["number"] for each in waiting] == [6, 8]
        for each in waiting:
            store.add(each, measured(int(each.options["number"])), 1)
    assert len(everything(folder)) == len(before)
    assert len(read_results(folder).runs) == 12


def test_what_no_page_can_be_read_of_is_recovered_around(tmp_path: Path) -> None:
    folder = varied(tmp_path, 60)
    whole = bytearray(results_bytes(folder))
    page = 4096
    for place in (len(whole) // 3 // page, len(whole) // 2 // page):
        whole[place * page : place * page + page] = random.Random(place).randbytes(page)
    (folder / FILE_NAME).write_bytes(whole)
    assert check(Store, folder / FILE_NAME).damaged
    aside, rows = drop(Store, folder / FILE_NAME) or (None, 0)
    assert aside is not None
    assert aside.read_bytes() == whole
    assert check(Store, folder / FILE_NAME).damaged == ()
    kept = check(Store, folder / FILE_NAME).rows
    assert 0 < kept < 80
    assert kept + rows == 80


def test_damaged_facts_of_the_suite_are_written_again_by_its_next_run(tmp_path: Path) -> None:
    folder = changed(fill(tmp_path, range(3)), "UPDATE meta SET value = '[0.5]' WHERE key = 'targets'")
    assert check(Store, folder / FILE_NAME).damaged == ("what the file says of itself",)
    assert drop(Store, folder / FILE_NAME) == (folder / "results-damaged-1.sqlite", 0)
    assert "bench-mtl run SUITE --out" in refusal(lambda: Store.open(folder))
    fill(folder, [], plan=[case(number) for number in range(3)])
    assert read_results(folder).targets == (1e-2, 1e-4)


def test_a_file_without_checksums_is_read_and_sealed(tmp_path: Path) -> None:
    folder = changed(varied(tmp_path / "former"), *FORMER)
    rows = [table.drop(columns=[]) for table in (read_results(folder).runs, read_results(folder).samples)]
    assert not check(Store, folder / FILE_NAME).is_sealed
    assert seal(Store, folder / FILE_NAME)
    assert not seal(Store, folder / FILE_NAME)
    found = check(Store, folder / FILE_NAME)
    assert found.is_sealed
    assert found.sealed_since is not None
    assert found.damaged == ()
    for before, after in zip(rows, (read_results(folder).runs, read_results(folder).samples), strict=True):
        assert before.equals(after)
    merge([folder, fill(tmp_path / "b", [50])], tmp_path / "c")
    assert check(Store, tmp_path / "c" / FILE_NAME).sealed_since == found.sealed_since


def test_a_run_that_adds_to_a_file_without_checksums_seals_it(tmp_path: Path) -> None:
    folder = changed(fill(tmp_path, range(3)), *FORMER)
    fill(folder, [3], plan=[case(number) for number in range(4)])
    found = check(Store, folder / FILE_NAME)
    assert (found.rows, found.is_sealed, found.damaged) == (4, True, ())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_damaged_can_be_dropped_and_the_rest_is_as_it_was(tmp_path: Path, seed: int) -> None:
    folder = varied(tmp_path / "a", 20)
    whole = results_bytes(folder)
    with Store.open(folder) as store:
        runs = store.runs().set_index("case_key").drop(columns=["id", "environment_id"])
    rng = random.Random(100 + seed)
    dropped = 0
    for _ in range(60):
        (folder / FILE_NAME).write_bytes(damaged(whole, rng))
        try:
            found = check(Store, folder / FILE_NAME)
        except InputError:
            continue  # not even a file of SQLite, or of another version
        if not found.damaged:
            continue
        try:
            result = drop(Store, folder / FILE_NAME)
        except InputError:
            continue
        assert result is not None
        dropped += 1
        result[0].unlink()
        assert check(Store, folder / FILE_NAME).damaged == ()
        fill(folder, [], plan=[case(number, "Häuser ∑", "pg") for number in range(20)])
        with Store.open(folder) as store:
            kept = store.runs().set_index("case_key").drop(columns=["id", "environment_id"])
        assert kept.empty or kept.equals(runs.loc[kept.index])  # all rows belong to one environment, which may be what is damaged
    assert dropped > 15


# Values that no run can have written --------------------------------------------------------------------------------------------------

IMPOSSIBLE = {
    "status = 'odd'": "status is 'odd'", "primal = 'abc'": "primal is 'abc'", "primal = 9e999": "primal is inf",
    "options = '{'": "options is",
    "info = '[1'": "info is", "notes = '3'": "notes is '3'", "dimensions = 'x'": "dimensions is 'x'", "data = '[]'": "data is '[]'",
    "relative_gap = -1": "relative_gap is -1.0", "relative_gap = 0.5": "relative_gap is 0.5, but that of its bounds",
    "solve_seconds = -5": "solve_seconds is -5.0", "solve_seconds = 'soon'": "solve_seconds is 'soon'", "target = -1": "target is -1.0",
    "seed = 's'": "seed is 's'", "iterations = -7": "iterations is -7", "threads = 0": "threads is 0", "limits = 'no'": "limits is 'no'",
    "solver_label = hex(zeroblob(2000000))": "(4000000 characters)", "reason = hex(zeroblob(2000000))": "(4000000 characters)",
    "dual = NULL, relative_gap = NULL": "but nothing is proven",
}  # fmt: skip


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of the version that had no checksums."""
    return results_bytes(changed(fill(tmp_path_factory.mktemp("former"), range(3)), *FORMER))


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_a_value_that_no_run_can_have_written_is_refused_by_name(tmp_path: Path, former: bytes, change: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(former)
    folder = changed(tmp_path, f"UPDATE run SET {change} WHERE id = 2")
    said = refusal(lambda: read_results(folder))
    assert str(folder) in said
    assert "row 2 (" in said
    assert IMPOSSIBLE[change] in said
    assert "\n" not in said
    assert len(said) < 1000
    assert [found for found in check(Store, folder / FILE_NAME).damaged if IMPOSSIBLE[change] in found]


@pytest.mark.parametrize(
    ("statement", "words"),
    {
        "UPDATE sample SET seconds = -1 WHERE run_id = 2": "seconds is -1.0",
        "UPDATE sample SET relative_gap = -1 WHERE run_id = 2": "relative_gap is -1.0",
        "UPDATE sample SET dual = 9e999 WHERE run_id = 2": "dual is inf",
        "UPDATE sample SET primal = 'x' WHERE run_id = 2": "primal is 'x'",
        "UPDATE meta SET value = '[' WHERE key = 'targets'": "targets is '['",
        "UPDATE meta SET value = '[-1, 0]' WHERE key = 'targets'": "targets is",
        "UPDATE meta SET value = 'many' WHERE key = 'cases'": "cases is 'many'",
        "UPDATE environment SET description = '[]'": "description is '[]'",
    }.items(),
)
def test_other_tables_are_looked_at_too(tmp_path: Path, former: bytes, statement: str, words: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(former)
    assert words in refusal(lambda: read_results(changed(tmp_path, statement)))


def test_impossible_rows_are_set_aside(tmp_path: Path, former: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(former)
    folder = changed(tmp_path, "UPDATE run SET status = 'odd' WHERE id = 2", "UPDATE sample SET seconds = -1 WHERE run_id = 3")
    with pytest.raises(InputError, match="status is 'odd'"):
        seal(Store, folder / FILE_NAME)
    assert (drop(Store, folder / FILE_NAME) or (None, 0))[1] == 2
    assert (check(Store, folder / FILE_NAME).rows, check(Store, folder / FILE_NAME).damaged) == (1, ())
