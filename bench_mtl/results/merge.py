"""Results of several folders, from several machines, as one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists
from bench_mtl.engine.environment import machines
from bench_mtl.results.database import FILE_NAME, Store, require_free
from bench_mtl.results.digests import ENVIRONMENT, META, put_all
from bench_mtl.results.files import FolderLock, decoding, made_folder, make_file
from bench_mtl.results.schema import PLACE, RUN_PARTS, RUNG, lay_out
from bench_mtl.results.sqlite_store import SEALED_SINCE, now


@dataclass(frozen=True)
class Merged:
    """What a merge did."""

    runs: int
    """Listed in the new folder."""
    superseded: int
    """Rows that count in their folder and not in the new one, because a folder before has a row of the same case."""
    ambiguous: int
    """Listed rows that share problem label, solver label, seed, repetition and target with one before, and yet are other cases."""
    machines: tuple[dict[str, Any], ...]
    """The different ones that listed runs were made on."""


def merge(folders: Sequence[Path], out: Path, *, proofs: bool = True) -> Merged:
    """Bring the results in `folders`, of one suite, together in the new results folder `out`.

    Of a case that several folders have a counting row of, the first folder's counts. All other rows are kept as superseded. The cases are
    in the order of the first folder, then of the next. Environments of the same content become one. Without `proofs` the points are left
    out that prove the bounds again, most of the file; one folder is enough then.

    Raises
    ------
    InputError : too few folders, results that cannot be read or belong to different suites or targets, or `out` is one of the
        folders, has results or files of a report already, or cannot be written. `out` is then as it was.
    """
    if len(folders) < (2 if proofs else 1):
        raise InputError("merge needs at least two results folders, or one with --without-proofs")
    for folder in folders:
        if folder.resolve() == out.resolve():
            raise InputError(f"--out: {out} is one of the folders to merge: choose another one")
    _require_new(out)
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(folder)) for folder in folders]
        for store in stores:
            stack.enter_context(store.snapshot())
            store.require_whole()
        facts = _facts(folders, [store.meta() for store in stores])
        selection = _select([_held(store) for store in stores])
        facts["cases"] = str(max(len(selection.positions), *(_cases(store) for store in stores)))
        with made_folder(out):
            lock = FolderLock(out)
            try:
                _require_new(out)  # another one may have come in between
                return make_file(out / FILE_NAME, lambda connection: _fill(connection, stores, facts, selection, proofs))
            finally:
                lock.release()


def _require_new(out: Path) -> None:
    if exists("output folder", out / FILE_NAME):
        raise InputError(f"{out} already holds results: choose another folder with --out")
    require_free(out)


def _facts(folders: Sequence[Path], metas: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the new file says of its suite."""
    first = metas[0]
    for folder, meta in zip(folders, metas, strict=True):
        if meta["suite_name"] != first["suite_name"]:
            raise InputError(
                f"only results of one suite can be merged: {folders[0]} holds '{first['suite_name']}', {folder} '{meta['suite_name']}'"
            )
        if meta["targets"] != first["targets"]:
            raise InputError(
                f"only results with the same targets can be merged: {folders[0]} has {first['targets']}, {folder} {meta['targets']}"
            )
    names = [" ".join(folder.resolve().name.split()) for folder in folders]
    texts = [meta["suite_text"] for meta in metas]
    return {
        "suite_name": first["suite_name"],
        "suite_text": _joined(names, texts) if len(set(texts)) > 1 else texts[0],
        "description": first["description"],
        "targets": first["targets"],
        **_sealed_since(metas),
    }


def _sealed_since(metas: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Since when all rows have digests, unless each has had one since it was written."""
    late = [
        meta.get(SEALED_SINCE, now()) for meta in metas if SEALED_SINCE in meta or meta["schema_version"] == str(Store.unsealed_version)
    ]
    return {SEALED_SINCE: max(late)} if late else {}


def _joined(names: Sequence[str], texts: Sequence[str]) -> str:
    """The different texts one after the other, as a suite file: the first as it is, the others as comments."""
    owners: dict[str, list[str]] = {}
    for name, text in zip(names, texts, strict=True):
        owners.setdefault(text, []).append(name)
    parts: list[str] = []
    for text, of in owners.items():
        lines = text.splitlines()
        parts.append("\n".join([f"# Suite of {', '.join(of)}", *(lines if not parts else [f"# {line}".rstrip() for line in lines])]))
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True)
class _Held:
    """A counting row."""

    id: int
    key: str
    listed: bool
    labels: tuple[str, str]
    """The labels of problem and solver."""


@dataclass(frozen=True)
class _Selection:
    """Which rows of the folders count in the new one."""

    winners: frozenset[tuple[int, int]]
    """Number of the folder and id of the row there."""
    positions: dict[str, tuple[int, tuple[str, str]]]
    """The place of each listed case in the new order, by key, with the labels of the folder that lists it first."""
    superseded: int


def _held(store: Store) -> list[_Held]:
    query = "SELECT id, case_key, listed, problem_label, solver_label FROM run WHERE superseded = 0 ORDER BY position IS NULL, position, id"
    return [_Held(id_, key, bool(listed), (problem, solver)) for id_, key, listed, problem, solver in store.query(query)]


def _select(folders: Sequence[Sequence[_Held]]) -> _Selection:
    winners: dict[str, tuple[int, int]] = {}
    positions: dict[str, tuple[int, tuple[str, str]]] = {}
    for number, rows in enumerate(folders):
        for row in rows:
            winners.setdefault(row.key, (number, row.id))
            if row.listed:
                positions.setdefault(row.key, (len(positions), row.labels))
    return _Selection(frozenset(winners.values()), positions, sum(map(len, folders)) - len(winners))


def _cases(store: Store) -> int:
    """Number of cases that the suite listed last; 0 where the file is too old to say."""
    count = store.meta().get("cases", "0")
    return int(count) if count.isdecimal() else 0


def _fill(connection: sqlite3.Connection, stores: Sequence[Store], facts: Mapping[str, str], selection: _Selection, proofs: bool) -> Merged:
    lay_out(connection, facts)
    environments: dict[str, int] = {}
    offset = 0
    for number, store in enumerate(stores):
        known = _add_environments(connection, store, environments)
        before, offset = offset, _add_runs(connection, store, number, known, selection, offset)
        if proofs and store.is_sealed:
            _add_proofs(connection, store, before)
        if store.has_table(RUNG.table):
            _add_rungs(connection, store, before)
        if store.has_table(PLACE.table):
            _add_places(connection, store, before)
    put_all(connection, (META, ENVIRONMENT, *RUN_PARTS))
    return Merged(len(selection.positions), selection.superseded, _ambiguous(connection), _machines(connection))


def _add_environments(connection: sqlite3.Connection, store: Store, known: dict[str, int]) -> dict[int, int]:
    """Add those that no folder before had; returns the new ids by the old ones."""
    ids = {}
    for id_, started, description in store.query("SELECT id, started, description FROM environment ORDER BY id"):
        with decoding(store.path):
            text = json.dumps(json.loads(description), sort_keys=True)
        if text not in known:
            known[text] = len(known) + 1
            connection.execute("INSERT INTO environment VALUES (?, ?, ?)", (known[text], started, text))
        ids[id_] = known[text]
    return ids


def _add_runs(
    connection: sqlite3.Connection, store: Store, number: int, environments: Mapping[int, int], selection: _Selection, offset: int
) -> int:
    """Add all runs of a folder with their samples, measures and patterns, the ids moved by `offset`; returns the highest there are now."""
    names = [name for _, name, *_ in store.query("PRAGMA table_info(run)")]
    columns = ", ".join(names)
    insert = f"INSERT INTO run ({columns}) VALUES ({', '.join('?' * len(names))})"
    highest = offset
    for values in store.query(f"SELECT {columns} FROM run ORDER BY id"):
        row = dict(zip(names, values, strict=True))
        row |= _standing(row["case_key"], (number, row["id"]) in selection.winners, selection)
        with decoding(store.path):
            row |= {"id": row["id"] + offset, "environment_id": environments[row["environment_id"]]}
        connection.execute(insert, tuple(row.values()))
        highest = max(highest, row["id"])
    samples = f"""
        SELECT run_id + {offset}, number, seconds, iteration, passes, primal, dual, relative_gap, infeasibility, asked_tolerance
        FROM sample ORDER BY run_id, number
    """
    connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", store.query(samples))
    measures = f"SELECT run_id + {offset}, number, name, value FROM measure ORDER BY run_id, number, name"
    connection.executemany("INSERT INTO measure VALUES (?, ?, ?, ?)", store.query(measures))
    patterns = f"SELECT run_id + {offset}, part, rows, columns, nonzeros, rank, bits FROM pattern ORDER BY run_id, part"
    connection.executemany("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?)", store.query(patterns))
    return highest


def _add_proofs(connection: sqlite3.Connection, store: Store, offset: int) -> None:
    proofs = f"SELECT run_id + {offset}, number, point, dual, bound_point FROM proof ORDER BY run_id, number"
    connection.executemany("INSERT INTO proof VALUES (?, ?, ?, ?, ?)", store.query(proofs))


def _add_rungs(connection: sqlite3.Connection, store: Store, offset: int) -> None:
    rungs = f"SELECT run_id + {offset}, number, asked_tolerance, seconds, setup_seconds, ending FROM rung ORDER BY run_id, number"
    connection.executemany("INSERT INTO rung VALUES (?, ?, ?, ?, ?, ?)", store.query(rungs))


def _add_places(connection: sqlite3.Connection, store: Store, offset: int) -> None:
    places = f"SELECT run_id + {offset}, number, file, line, function, source FROM place ORDER BY run_id, number"
    connection.executemany("INSERT INTO place VALUES (?, ?, ?, ?, ?, ?)", store.query(places))


def _standing(key: str, counts: bool, selection: _Selection) -> dict[str, Any]:
    """What a row says of its place among the others."""
    if not counts or key not in selection.positions:
        return {"position": None, "listed": 0, "superseded": int(not counts)}
    place, (problem, solver) = selection.positions[key]
    return {"position": place, "listed": 1, "superseded": 0, "problem_label": problem, "solver_label": solver}


def _machines(connection: sqlite3.Connection) -> tuple[dict[str, Any], ...]:
    query = "SELECT description FROM environment WHERE id IN (SELECT environment_id FROM run WHERE listed = 1) ORDER BY id"
    found, _ = machines([json.loads(description) for (description,) in connection.execute(query)])
    return tuple(found)


def _ambiguous(connection: sqlite3.Connection) -> int:
    """Number of listed rows beyond the first of each problem label, solver label, seed, repetition and target."""
    query = """
        SELECT coalesce(sum(rows - 1), 0)
        FROM (SELECT count(*) AS rows FROM run WHERE listed = 1 GROUP BY problem_label, solver_label, seed, repetition, target)
    """
    return int(connection.execute(query).fetchone()[0])
