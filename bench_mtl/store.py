"""Results in one SQLite file: a row per run, a row per certified sample, the suite's text and the environment once.

The schema is `SCHEMA` below; `docs/results.md` explains every column. One transaction writes a run with its samples.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bench_mtl.errors import InputError
from bench_mtl.paths import exists, is_file
from bench_mtl.suite import Case, Suite
from bench_mtl.types import Certificate, Record

SCHEMA_VERSION = 1

FILE_NAME = "results.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "runs.csv", "samples.csv", "tables", "figures")

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
    baseline: Certificate | None = None
    """What is proven of the zero point: the bounds of a run that ended without any of its own."""


class Store:
    """An open results file. Use as a context manager. Every method raises InputError where the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _naming(path):
            self._connection = _connect(path)

    @classmethod
    def create(cls, folder: Path, suite: Suite) -> Self:
        """The store of `suite` in `folder`: a new one, or the one that holds this suite's results already.

        Raises
        ------
        InputError : the folder holds another suite's results, or a file of another schema, or files that a report would
            overwrite, or cannot be written.
        """
        path = folder / FILE_NAME
        if exists("output folder", path):
            return cls._resume(folder, suite)
        for name in REPORT_NAMES:
            if exists("output folder", folder / name):
                raise InputError(
                    f"{folder} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another folder with --out"
                )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InputError(f"output folder {folder} cannot be written: {error}") from None
        store = cls(path)
        try:
            with store._writing() as connection:
                connection.executescript(SCHEMA)
                meta = {"schema_version": str(SCHEMA_VERSION), "suite_name": suite.name, "suite_text": suite.text}
                meta["description"] = suite.description
                meta["targets"] = json.dumps(suite.targets)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        except InputError:
            store.close()
            raise
        return store

    @classmethod
    def _resume(cls, folder: Path, suite: Suite) -> Self:
        store = cls.open(folder)
        held = store.meta()
        if held.get("suite_text") == suite.text and held.get("suite_name") == suite.name:
            return store
        store.close()
        changed = "another version of this suite" if held.get("suite_name") == suite.name else f"suite '{held.get('suite_name')}'"
        raise InputError(f"{folder} already holds the results of {changed}: choose another folder with --out")

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The store in `folder`.

        Raises
        ------
        InputError : there is none, or it is damaged, or of another schema version. Nothing is changed then.
        """
        path = folder / FILE_NAME
        if not is_file("results folder", path):
            raise InputError(f"no results in {folder}: there is no {FILE_NAME} (make some with: bench-mtl run SUITE --out {folder})")
        store = cls(path)
        try:
            version = store.meta().get("schema_version")
            if version != str(SCHEMA_VERSION):
                raise InputError(f"{path} has schema version {version}, but this bench_mtl reads version {SCHEMA_VERSION}")
        except InputError:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self) -> dict[str, str]:
        return dict(self._rows("SELECT key, value FROM meta"))

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store the environment of one invocation; returns its id."""
        row = (datetime.now(UTC).isoformat(timespec="seconds"), json.dumps(description))
        with self._writing() as connection:
            cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
        return int(cursor.lastrowid or 0)

    def environments(self) -> list[dict[str, Any]]:
        rows = self._rows("SELECT id, started, description FROM environment ORDER BY id")
        return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def finished(self) -> set[str]:
        """Keys of the cases that have a row."""
        return {key for (key,) in self._rows("SELECT case_key FROM run")}

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with its samples, in one transaction."""
        row = _run_row(case, outcome, environment_id)
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._writing() as connection:
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

    def _rows(self, query: str) -> list[Any]:
        with _naming(self._path):
            return self._connection.execute(query).fetchall()

    def _frame(self, query: str) -> Any:
        import pandas as pd

        with _naming(self._path), closing(self._connection.execute(query)) as cursor:
            return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with _naming(self._path), self._connection as connection:
            yield connection


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn what SQLite says into an InputError that names the file and says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorname", "")
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CONSTRAINT")):
            # A case is written once only, so that a row that is there already is another run's.
            reason = f"another run is using this folder ({error}): wait for its end, or choose another folder with --out"
        elif kind.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR")):
            reason = f"not a readable results file ({error}): move it away and run again"
        else:
            reason = f"cannot be read or written: {error}"
        raise InputError(f"{path}: {reason}") from None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _run_row(case: Case, outcome: Outcome, environment_id: int) -> dict[str, Any]:
    record, best = outcome.record, outcome.record.best or outcome.baseline
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
        "infeasibility": record.best and record.best.infeasibility,
        "iterations": last and last.step,
        "passes": last and last.work,
        **{f"{name}_seconds": seconds for name, seconds in asdict(record.times).items()},
        "peak_memory_mib": record.peak_memory_mib,
        "info": json.dumps(dict(record.info), default=str),
    }
