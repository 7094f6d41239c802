"""Stored rows are proven again from what they keep, and one that says more than its points prove is found."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import HINGE, PLUGINS, TINY, Executing, run_suite, solver, suite_of

from bench_mtl.core.types import Proof
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.results.digests import seal
from bench_mtl.results.merge import merge
from bench_mtl.results.stored_proofs import proof_rows, read_proof
from bench_mtl.runner import Setting
from bench_mtl.runner.recertify import Recertified, Standing, recertify

SUITE = suite_of(
    'name = "projected_gradient"',
    'name = "accelerated_gradient"',
    'name = "conic"',
    solver("faulty", "fault", "raises", "sleeps"),
    limits="seconds = 1.0",
    problems=TINY + HINGE,
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, shared: Executing) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    run_suite(folder, SUITE, executor=shared)
    return folder


def again(folder: Path) -> list[Recertified]:
    with Store.open(folder) as store:
        return list(recertify(store, Setting(1, PLUGINS)))


def rewritten(source: Path, folder: Path, statement: str, *values: object) -> Path:
    """A copy in which a row says something else, with checksums that agree: whoever can write the file can write these too."""
    folder.mkdir()
    (folder / FILE_NAME).write_bytes((source / FILE_NAME).read_bytes())
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute(statement, values)
        seal(connection)
    return folder


def test_every_row_with_bounds_is_proven_again(ran: Path) -> None:
    found = again(ran)
    with Store.open(ran) as store:
        has_bounds = store.runs().set_index("id")["primal"].notna()
    assert {row.id: row.standing for row in found} == {
        number: Standing.PROVEN if has else Standing.EMPTY for number, has in has_bounds.items()
    }
    assert has_bounds.sum() > 5


def test_a_row_that_says_more_than_its_points_prove_is_found(ran: Path, tmp_path: Path) -> None:
    with Store.open(ran) as store:
        verified = store.runs().set_index("solver").loc["accelerated_gradient"].iloc[0]
    number, primal, dual = int(verified["id"]), float(verified["primal"]), float(verified["dual"])
    changes = {
        "primal": ("UPDATE run SET primal = ? WHERE id = ?", primal - 1e-6 * abs(primal), number),
        "dual": ("UPDATE run SET dual = ? WHERE id = ?", dual + 1e-6 * abs(dual), number),
        "target": ("UPDATE run SET target = ? WHERE id = ?", 1e-13, number),
        "proof": ("UPDATE proof SET point = ?, dual = NULL, bound_point = NULL WHERE run_id = ?", at_zero(ran, number), number),
    }
    for name, change in changes.items():
        wrong = [row for row in again(rewritten(ran, tmp_path / name, *change)) if row.standing is Standing.FALSE]
        assert [row.id for row in wrong] == [number], name
        assert "points prove" in wrong[0].reason
    broken = again(rewritten(ran, tmp_path / "broken", "UPDATE proof SET point = ? WHERE run_id = ?", b"nothing", number))
    assert [row.reason for row in broken if row.standing is Standing.UNPROVABLE] == [
        "no stored array: Error -3 while decompressing data: incorrect header check"
    ]
    gone = again(rewritten(ran, tmp_path / "gone", "DELETE FROM proof WHERE run_id = ?", number))
    assert [row.reason for row in gone if row.standing is Standing.UNPROVABLE] == ["it keeps no points"]


def at_zero(folder: Path, number: int) -> bytes:
    """The zero point in place of what a row keeps."""
    with Store.open(folder) as store:
        point = read_proof(*store.proofs(number)[0]).point
    ((_, packed, _, _),) = proof_rows([Proof(np.zeros_like(point))])
    return packed


def test_without_proofs_rows_stay_as_sealed_and_cannot_be_proven_again(ran: Path, tmp_path: Path) -> None:
    merge([ran], tmp_path / "small", proofs=False)
    with Store.open(ran) as whole, Store.open(tmp_path / "small") as small:
        assert small.runs().equals(whole.runs())
        assert small.samples().equals(whole.samples())
        verified = set(small.runs().query("status == 'verified'")["id"])
    assert verified
    for row in again(tmp_path / "small"):  # rows of what the baseline alone proves stay proven
        assert row.standing is not Standing.FALSE
        assert row.id not in verified or row.standing is Standing.UNPROVABLE


def test_the_command_says_what_is_proven(ran: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    again = command("check", ran, "--recertify", "--plugins", PLUGINS)
    assert again.code in (0, None), again.text
    assert " rows proven again" in again.text
    wrong = rewritten(ran, tmp_path / "wrong", "UPDATE run SET dual = primal WHERE status = 'verified'")
    again = command("check", wrong, "--recertify", "--plugins", PLUGINS)
    assert again.code == 1
    assert "  false: row " in again.text
    assert "rows, all match their checksums" in command("check", wrong).text
