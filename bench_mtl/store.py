"""Results in one SQLite file: a row per run, a row per certified sample, the suite's text and the environment once.

The schema is `SCHEMA` below; `docs/results.md` explains every column. One transaction writes a run with its samples.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bench_mtl.errors import InputError
from bench_mtl.suite import Case, Suite
from bench_mtl.types import Record

SCHEMA_VERSION = 1

FILE_NAME = "results.sqlite"

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    case_key TEXT NOT NULL UNIQUE,
    environment_id INTEGER NOT NULL REFERENCES environment (id),
    problem TEXT NOT NULL,
    problem_label TEXT NOT NULL,
    instance_key TEXT NOT NULL,
    data TEXT NOT NULL,
    parameters TEXT NOT NULL,
    seed INTEGER,
    dimensions TEXT NOT NULL,
    notes TEXT NOT NULL,
    solver TEXT NOT NULL,
    solver_label TEXT NOT NULL,
    options TEXT NOT NULL,
    solver_version TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    target REAL NOT NULL,
    limit_seconds REAL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    primal REAL,
    dual REAL,
    relative_gap REAL,
    infeasibility REAL,
    iterations INTEGER,
    passes REAL,
    build_seconds REAL NOT NULL,
    compile_seconds REAL NOT NULL,
    setup_seconds REAL NOT NULL,
    solve_seconds REAL NOT NULL,
    certify_seconds REAL NOT NULL,
    peak_memory_mib REAL,
    info TEXT NOT NULL
);
CREATE TABLE sample (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    seconds REAL NOT NULL,
    iteration INTEGER NOT NULL,
    passes REAL NOT NULL,
    primal REAL NOT NULL,
    dual REAL NOT NULL,
    relative_gap REAL NOT NULL,
    infeasibility REAL NOT NULL,
    asked_tolerance REAL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Outcome:
    """A record with what is known of its problem and solver."""

    record: Record
    dimensions: Mapping[str, int]
    notes: tuple[str, ...]
    solver_version: str


class Store:
    """An open results file. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def create(cls, folder: Path, suite: Suite) -> Self:
        """The store of `suite` in `folder`: a new one, or the one that holds this suite's results already.

        Raises
        ------
        InputError : the folder holds another suite's results, or a file of another schema, or cannot be written.
        """
        path = folder / FILE_NAME
        if path.exists():
            store = cls.open(folder)
            held = store.meta()
            if held["suite_text"] != suite.text or held["suite_name"] != suite.name:
                store.close()
                changed = "another version of this suite" if held["suite_name"] == suite.name else f"suite '{held['suite_name']}'"
                raise InputError(f"{folder} already holds the results of {changed}: choose another folder with --out")
            return store
        try:
            folder.mkdir(parents=True, exist_ok=True)
            store = cls(_connect(path))
            with store._connection as connection:
                connection.executescript(SCHEMA)
                meta = {"schema_version": str(SCHEMA_VERSION), "suite_name": suite.name, "suite_text": suite.text}
                meta["description"] = suite.description
                meta["targets"] = json.dumps(suite.targets)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"output folder {folder} cannot be written: {error}") from None
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The store in `folder`.

        Raises
        ------
        InputError : there is none, or it is damaged, or of another schema version. Nothing is changed then.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            raise InputError(f"no results in {folder}: there is no {FILE_NAME} (make some with: bench-mtl run SUITE --out {folder})")
        store = None
        try:
            store = cls(_connect(path))
            version = store.meta().get("schema_version")
        except sqlite3.Error as error:
            if store is not None:
                store.close()
            raise InputError(f"{path} is not a readable results file ({error}): move it away and run again") from None
        if version != str(SCHEMA_VERSION):
            store.close()
            raise InputError(f"{path} has schema version {version}, but this bench_mtl reads version {SCHEMA_VERSION}")
        return store

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT key, value FROM meta").fetchall())

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store the environment of one invocation; returns its id."""
        with self._connection as connection:
            row = (datetime.now(UTC).isoformat(timespec="seconds"), json.dumps(description))
            cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
        return int(cursor.lastrowid or 0)

    def environments(self) -> list[dict[str, Any]]:
        rows = self._connection.execute("SELECT id, started, description FROM environment ORDER BY id").fetchall()
        return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def finished(self) -> set[str]:
        """Keys of the cases that have a row."""
        return {key for (key,) in self._connection.execute("SELECT case_key FROM run")}

    def forget(self, keys: set[str]) -> None:
        """Delete the rows of these cases."""
        with self._connection as connection:
            for key in keys:
                connection.execute("DELETE FROM sample WHERE run_id IN (SELECT id FROM run WHERE case_key = ?)", (key,))
                connection.execute("DELETE FROM run WHERE case_key = ?", (key,))

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with its samples, in one transaction."""
        row = _run_row(case, outcome, environment_id)
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._connection as connection:
            cursor = connection.execute(f"INSERT INTO run ({names}) VALUES ({marks})", tuple(row.values()))
            samples = [
                (
                    cursor.lastrowid, number, sample.seconds, sample.step, sample.work, sample.certificate.primal,
                    sample.certificate.dual, sample.certificate.relative_gap, sample.certificate.infeasibility, sample.asked,
                )
                for number, sample in enumerate(outcome.record.samples)
            ]  # fmt: skip
            connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", samples)

    def runs(self) -> Any:
        """All runs as a DataFrame, in the order they were made."""
        return self._frame("SELECT * FROM run ORDER BY id")

    def samples(self) -> Any:
        """All samples as a DataFrame."""
        return self._frame("SELECT * FROM sample ORDER BY run_id, number")

    def _frame(self, query: str) -> Any:
        import pandas as pd

        with closing(self._connection.execute(query)) as cursor:
            return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _run_row(case: Case, outcome: Outcome, environment_id: int) -> dict[str, Any]:
    record, best = outcome.record, outcome.record.best
    last = record.samples[-1] if record.samples else None
    return {
        "case_key": case.key,
        "environment_id": environment_id,
        "problem": case.instance.problem,
        "problem_label": case.instance.label,
        "instance_key": case.instance.key,
        "data": json.dumps(case.instance.data),
        "parameters": json.dumps(case.instance.parameters),
        "seed": case.instance.seed,
        "dimensions": json.dumps(dict(outcome.dimensions)),
        "notes": json.dumps(outcome.notes),
        "solver": case.solver,
        "solver_label": case.solver_label,
        "options": json.dumps(case.options),
        "solver_version": outcome.solver_version,
        "repetition": case.repetition,
        "threads": case.threads,
        "target": case.target,
        "limit_seconds": case.limits.seconds,
        "status": str(record.status),
        "reason": record.reason,
        "primal": best and best.primal,
        "dual": best and best.dual,
        "relative_gap": best and best.relative_gap,
        "infeasibility": best and best.infeasibility,
        "iterations": last and last.step,
        "passes": last and last.work,
        **{f"{name}_seconds": seconds for name, seconds in asdict(record.times).items()},
        "peak_memory_mib": record.peak_memory_mib,
        "info": json.dumps(dict(record.info), default=str),
    }
