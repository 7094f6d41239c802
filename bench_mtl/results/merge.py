"""Results of several folders, from several machines, as one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists
from bench_mtl.engine.environment import machines
from bench_mtl.results.database import FILE_NAME, Store, insert, lay_out, require_free, require_no_others
from bench_mtl.results.digests import seal
from bench_mtl.results.files import locked, made_folder, make_file
from bench_mtl.results.schema import PARTS


@dataclass(frozen=True)
class Merged:
    """What a merge came to: of the rows that count in their folder, the `superseded` ones do not, as a folder before has that case's row.

    The `ambiguous` are listed, share labels, seed, repetition, target and clock with one before, and yet are other cases.
    """

    runs: int
    superseded: int
    ambiguous: int
    machines: tuple[dict[str, Any], ...]


def merge(folders: Sequence[Path], out: Path, *, proofs: bool = True) -> Merged:
    """Bring the results in `folders`, of one suite, together in the new results folder `out`.

    Of a case that several folders have a counting row of, the first folder's counts; all others are stored as superseded. The cases are in
    the order of the first folder, then of the next; equal environments become one. Without `proofs` the points are left out that prove the
    bounds again, most of the file; one folder is enough then. `out` is as it was where it raises InputError: for too few folders, results
    that cannot be read or are of different suites or targets, an `out` that is one of them, is not empty, or cannot be written.
    """
    if len(folders) < (2 if proofs else 1):
        raise InputError("merge needs at least two results folders, or one with --without-proofs")
    if out.resolve() in [folder.resolve() for folder in folders]:
        raise InputError(f"--out: {out} is one of the folders to merge: choose another one")
    _require_new(out)
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(folder)) for folder in folders]
        for store in stores:
            stack.enter_context(store.snapshot())
            store.require_whole(proofs=proofs)
        facts = _facts(folders, [store.meta() for store in stores])
        with made_folder(out), locked(out):
            _require_new(out)  # another one may have come in between
            return make_file(out / FILE_NAME, lambda connection: _fill(connection, stores, facts, proofs))


def _require_new(out: Path) -> None:
    if exists("output folder", out / FILE_NAME):
        raise InputError(f"{out} already holds results: choose another folder with --out")
    require_free(out)
    require_no_others(out)


def _facts(folders: Sequence[Path], metas: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the new file says of its suite."""
    first = metas[0]
    for folder, meta in zip(folders, metas, strict=True):
        for key, what in (("suite_name", "of one suite"), ("targets", "with the same targets")):
            if meta[key] != first[key]:
                differ = f"{folders[0]} has {first[key]}, {folder} has {meta[key]}"
                raise InputError(f"only results {what} can be merged: {differ}")
    names = [" ".join(folder.resolve().name.split()) for folder in folders]
    cases = max(int(meta.get("cases", 0)) for meta in metas)
    return {**first, "suite_text": _joined(names, [meta["suite_text"] for meta in metas]), "cases": str(cases)}


def _joined(names: Sequence[str], texts: Sequence[str]) -> str:
    """The different texts one after the other, as a suite file: the first as it is, the others as comments."""
    owners: dict[str, list[str]] = {}
    for name, text in zip(names, texts, strict=True):
        owners.setdefault(text, []).append(name)
    if len(owners) == 1:
        return texts[0]
    parts: list[str] = []
    for text, of in owners.items():
        lines = text.splitlines()
        parts.append("\n".join([f"# Suite of {', '.join(of)}", *(lines if not parts else [f"# {line}".rstrip() for line in lines])]))
    return "\n\n".join(parts) + "\n"


def _fill(connection: sqlite3.Connection, stores: Sequence[Store], facts: Mapping[str, str], proofs: bool) -> Merged:
    lay_out(connection, facts)
    environments: dict[str, int] = {}
    listings = []
    for store in stores:
        (offset,) = connection.execute("SELECT coalesce(max(id), 0) FROM run").fetchone()
        numbers = _add_environments(connection, store, environments)
        for run_id, key, environment, *row in store.query("SELECT * FROM run ORDER BY id"):
            insert(connection, "run", [(run_id + offset, key, numbers[environment], *row)])
        for table in (*PARTS, *(["proof"] if proofs else [])):
            insert(connection, table, ((run_id + offset, *row) for run_id, *row in store.query(f"SELECT * FROM {table}")))
        listed = store.query("SELECT * FROM listing ORDER BY position IS NULL, position, run_id")
        listings.append([(key, run_id + offset, *row) for key, run_id, *row in listed])
    rows = _listing(listings)
    insert(connection, "listing", rows)
    connection.execute("UPDATE meta SET value = max(CAST(value AS INTEGER), (SELECT count(*) FROM runs)) || '' WHERE key = 'cases'")
    seal(connection)
    groups = "SELECT count(*) AS rows FROM runs GROUP BY problem_label, solver_label, seed, repetition, target, clock"
    runs, ambiguous = connection.execute(f"SELECT coalesce(sum(rows), 0), coalesce(sum(rows - 1), 0) FROM ({groups})").fetchone()
    query = "SELECT description FROM environment WHERE id IN (SELECT environment_id FROM runs) ORDER BY id"
    distinct, _ = machines([json.loads(description) for (description,) in connection.execute(query)])
    return Merged(runs, sum(map(len, listings)) - len(rows), ambiguous, tuple(distinct))


def _add_environments(connection: sqlite3.Connection, store: Store, numbers: dict[str, int]) -> dict[int, int]:
    """Add those that no folder before had; returns the new ids by the old ones."""
    ids = {}
    for number, started, text, stored in store.query("SELECT * FROM environment ORDER BY id"):
        if text not in numbers:
            numbers[text] = len(numbers) + 1
            insert(connection, "environment", [(numbers[text], started, text, stored)])
        ids[number] = numbers[text]
    return ids


def _listing(listings: Iterable[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Return the listing of all folders: of each case the run of the first folder, the place and labels of the first that lists it."""
    winners: dict[str, tuple[Any, ...]] = {}
    labels: dict[str, tuple[Any, ...]] = {}
    for rows in listings:
        for key, run_id, position, *words in rows:
            winners.setdefault(key, (run_id, None, *words))
            if position is not None:
                labels.setdefault(key, (len(labels), *words))
    return [(key, run_id, *labels.get(key, row)) for key, (run_id, *row) in winners.items()]
