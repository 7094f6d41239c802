"""Damage to a results file: nothing that was damaged is read as another result."""

import errno
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hand_made import case, changed, fill, finished_in, outcome, results_bytes, suite

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Certificate, Place, Proof, Sample, Status
from bench_mtl.results import FILE_NAME, Outcome, Store
from bench_mtl.results.check import check, drop
from bench_mtl.results.export import TABLES, export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge


def measured(number: int) -> Outcome:
    """A run with everything that belongs to one."""
    samples = [
        Sample(0.1 * i, i, 1.0 + i, Certificate(1.0 + number, 1.0 / (i + 3.0), 0.0), measures=(("error", 0.5 / (i + 1)), ("zeros", 3.0)))
        for i in range(6)
    ]
    full = outcome(samples, Status.ERROR, solution={"W": np.arange(40.0).reshape(8, 5) * (number + 1)})
    return replace(full, notes=("Grüße",), record=replace(full.record, places=(Place("mine.py", number, "Mine.steps", "raise"),)))


def varied(folder: Path, runs: int = 12) -> Path:
    """Results of two machines, a quarter of them superseded."""
    fill(folder, {number: measured(number) for number in range(runs)})
    with Store.create(folder, suite()) as store:
        cases = [case(number, "Häuser ∑", "pg") for number in range(runs)]
        waiting = store.plan(cases[: runs // 3], force=True)
        environment = store.add_environment({"processor": "other", "logical_cores": 2})
        for number, each in enumerate(waiting):
            store.add(each, measured(number + 7), environment)
        assert store.plan(cases) == []
    return folder


def everything(folder: Path) -> str:
    """All that is read, as text that tells any two of them apart."""
    with Store.open(folder) as store, store.snapshot():
        tables = [list(store.chunks(name, 100)) for name in TABLES]
        return repr([tables, store.meta(), store.environments(), sorted(store.finished()), store.patterns()])


def rows(folder: Path) -> pd.DataFrame:
    with Store.open(folder) as store:
        return store.runs().set_index("case_key").drop(columns=["id", "environment_id"])


def damaged(content: bytes, rng: random.Random) -> bytes:
    """`content` with one bit, or one byte, that is another."""
    other = bytearray(content)
    place = rng.randrange(len(other))
    other[place] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
    return bytes(other)


@pytest.mark.parametrize(("seed", "times"), [(0, 40), *(pytest.param(seed, 100, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_what_is_damaged_is_refused_or_read_as_it_was_and_the_rest_can_be_set_aside(tmp_path: Path, seed: int, times: int) -> None:
    folder = varied(tmp_path, 20)
    content, undamaged, runs = results_bytes(folder), everything(folder), rows(folder)
    rng, refusals, dropped = random.Random(seed), [], 0
    for _ in range(times):
        (folder / FILE_NAME).write_bytes(damaged(content, rng))
        try:
            assert everything(folder) == undamaged
        except InputError as error:
            refusals.append(str(error))
            with suppress(InputError):  # not even a file of SQLite, or of another version
                aside, *_ = drop(folder) or (folder, 0)
                aside.unlink()
                dropped += 1
                assert check(folder).damaged == ()
                fill(folder, [], plan=[case(number, "Häuser ∑", "pg") for number in range(20)])
                rest = rows(folder)
                assert rest.empty or rest.equals(runs.loc[rest.index])  # all are of one environment, which may be what is damaged
    assert all(str(folder / FILE_NAME) in text and "\n" not in text for text in refusals)
    assert len(refusals) > times / 4
    assert dropped > times / 8


#: What is changed, and whether row 2 is named for it.
CHANGES = {
    "a gap": ("UPDATE run SET relative_gap = 1e-9 WHERE id = 2", True),
    "a sample that is gone": ("DELETE FROM sample WHERE run_id = 2 AND number = 5", True),
    "a sample of another run": ("UPDATE sample SET run_id = 3, number = 77 WHERE run_id = 2 AND number = 5", True),
    "a measure": ("UPDATE measure SET value = 0.25 WHERE run_id = 2 AND number = 3", True),
    "a place": ("DELETE FROM place WHERE run_id = 2", True),
    "a label": ("UPDATE listing SET solver_label = 'qg' WHERE run_id = 2", True),
    "a row that nobody lists any more": ("UPDATE listing SET position = NULL WHERE run_id = 2", True),
    "a checksum": ("UPDATE run SET digest = zeroblob(16) WHERE id = 2", True),
    "text that is no UTF-8": ("UPDATE run SET reason = CAST(x'ff41' AS TEXT) WHERE id = 2", True),
    "an environment": ("UPDATE environment SET description = replace(description, 'quick', 'quack')", False),
    "the targets": ("UPDATE meta SET value = '[0.1]' WHERE key = 'targets'", False),
}


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("undamaged")
    return results_bytes(fill(folder, {number: measured(number) for number in range(4)}))


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_refused_by_name_wherever_it_is_read(tmp_path: Path, undamaged: bytes, what: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(undamaged)
    statement, is_named = CHANGES[what]
    changed(tmp_path, statement)
    assert ("damaged: row 2" in refusal(lambda: read_results(tmp_path))) is is_named
    fill(tmp_path / "other", [9])
    for action in (
        lambda: merge([tmp_path / "other", tmp_path], tmp_path / "out"),
        lambda: export(tmp_path, "csv"),
        lambda: fill(tmp_path, [7]),
    ):
        assert str(tmp_path / FILE_NAME) in refusal(action)
    assert not (tmp_path / "out").exists()


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(InputError) as error:
        action()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_damaged_is_listed_and_set_aside_and_run_anew(tmp_path: Path) -> None:
    folder = varied(tmp_path)
    assert (check(folder).rows, check(folder).damaged, drop(folder)) == (16, (), None)
    changed(folder, "UPDATE sample SET primal = 0.5 WHERE run_id = 7 AND number = 2", "UPDATE run SET status = 'wrong' WHERE id = 9")
    content = results_bytes(folder)
    assert check(folder).damaged == ("row 7 (pg on lasso)", "row 9 (pg on lasso)")
    assert drop(folder) == (folder / "results-damaged-1.sqlite", 2, 0)
    assert (folder / "results-damaged-1.sqlite").read_bytes() == content
    assert (check(folder).rows, check(folder).damaged, len(finished_in(folder))) == (14, (), 10)
    plan = [case(number, "Häuser ∑", "pg") for number in range(12)]
    with Store.create(folder, suite()) as store:
        assert store.plan(plan) == [plan[6], plan[8]]


def test_damaged_facts_of_the_suite_are_written_again_by_its_next_run(tmp_path: Path) -> None:
    folder = changed(fill(tmp_path, range(3)), "UPDATE meta SET value = '[0.5]' WHERE key = 'targets'")
    assert check(folder).damaged == ("what the file says of itself",)
    assert drop(folder) == (folder / "results-damaged-1.sqlite", 0, 0)
    assert "bench-mtl run SUITE --out" in refusal(lambda: Store.open(folder))
    fill(folder, [], plan=[case(number) for number in range(3)])
    assert read_results(folder).targets == (1e-2, 1e-4)


def test_a_damaged_listing_is_set_aside_without_its_run(tmp_path: Path) -> None:
    folder = changed(fill(tmp_path, range(3)), "UPDATE listing SET position = 7 WHERE run_id = 2")
    assert drop(folder) == (folder / "results-damaged-1.sqlite", 0, 1)
    assert (check(folder).rows, check(folder).damaged) == (3, ())


def test_a_damaged_proof_is_found_by_a_check_and_where_it_is_read(tmp_path: Path) -> None:
    proven = replace(outcome(), proofs=(Proof(np.ones((3, 2)), None, None),))
    folder = fill(tmp_path, {0: proven, 1: proven})
    changed(folder, "UPDATE proof SET point = zeroblob(9) WHERE run_id = 2")
    with Store.open(folder) as store:
        assert len(store.proofs(1)) == 1
        assert "row 2 (pg on lasso)" in refusal(lambda: store.proofs(2))
    assert check(folder).damaged == ("row 2 (pg on lasso)",)
    assert drop(folder) == (folder / "results-damaged-1.sqlite", 0, 0)
    with Store.open(folder) as store:
        assert (len(store.runs()), store.proofs(2)) == (2, [])


@pytest.mark.parametrize("has_links", [True, False])
def test_the_wal_goes_with_the_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    """As a run leaves it that was killed: its last change is in the WAL, and is damage."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    folder, killed = fill(tmp_path / "results", range(3)), tmp_path / "killed"
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE run SET status = 'wrong' WHERE id = 2")
        connection.commit()
        shutil.copytree(folder, killed)
    assert (killed / f"{FILE_NAME}-wal").stat().st_size
    if not has_links:
        monkeypatch.setattr("os.link", refuse)
    aside, rows, _ = drop(killed) or (killed, 0, 0)
    assert (aside.name, rows, check(killed).damaged, check(killed).rows) == ("results-damaged-1.sqlite", 1, (), 2)
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT status FROM run ORDER BY id").fetchall() == [("verified",), ("wrong",), ("verified",)]
