"""The store of a suite's results: its text, the environments, and the runs with all that belongs to each, written in one transaction.

Such a row is never changed nor deleted: which runs count, in which order and under which labels, is in table `listing`. A run that is made
again takes the place of the one before there.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.files import exists, is_dir, is_file
from bench_mtl.core.text import one_line
from bench_mtl.core.types import Place, Status
from bench_mtl.data.fingerprint import Watch
from bench_mtl.engine.suite import Case, Suite
from bench_mtl.results import files
from bench_mtl.results.digests import META_DIGEST, Damage, any_text, damages, digest, run_digests, seal_meta
from bench_mtl.results.files import UNFINISHED, locked, made_folder, make_file, naming, unreadable
from bench_mtl.results.rows import Outcome, Pattern, part_rows, run_row
from bench_mtl.results.schema import PARTS, SCHEMA, SCHEMA_VERSION

FILE_NAME = "results.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "report.html", "runs.csv", "samples.csv", "cover.svg", "tables", "figures")

#: What `meta` says of the suite in every file.
_FACTS = ("suite_name", "suite_text", "description", "targets")

#: Seconds after which the next row waits for the disk, so that a power cut costs no more; every row survives the end of the process.
_SYNC_SECONDS = 1.0

#: At most so many damaged rows are named in one message, each with so many characters.
_MOST_NAMED, _LONGEST_NAME = 5, 200

#: The tables that are read, and what puts the rows of the listed runs in order.
_TABLES = {"runs": "runs ORDER BY position", "environments": "environment WHERE id IN (SELECT environment_id FROM runs) ORDER BY id"} | {
    f"{part}s": f"{part} WHERE run_id IN (SELECT id FROM runs) ORDER BY run_id, {order}" for part, order in PARTS.items()
}


@dataclass(frozen=True)
class Plan:
    """What is to be done in a results folder so that it lists the `cases` of a suite, made by `plan_suite`.

    Those `waiting` are still to be run, in their order, as the file was then; it `has_changes` where it has to be written to, even if no
    case is to be run. Statuses in `again` make a case run again; keys in `only` are of the cases that may be run now, None of all.
    """

    cases: Sequence[Case]
    waiting: list[Case]
    has_changes: bool
    again: frozenset[Status]
    only: frozenset[str] | None = None


def _again(force: bool, retry_failed: bool) -> frozenset[Status]:
    """Return the statuses of runs that are to be made again."""
    return frozenset(status for status in Status if force or (retry_failed and status.is_failure))


def plan_suite(
    folder: Path, suite: Suite, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False,
    only: Collection[Case] | None = None,
) -> Plan:  # fmt: skip
    """Return what `Store.apply` has to do in `folder` before `cases` are run; change nothing.

    To `force` is to run everything again, to `retry_failed` what ended as wrong, crashed or error: their rows are superseded at once, so
    that such a run is resumed without saying so again. Of the cases that are not in `only` the rows stay as they are.
    """
    again = _again(force, retry_failed)
    plan = Plan(cases, [], True, again, None if only is None else frozenset(case.key for case in only))
    if not exists("output folder", folder / FILE_NAME):
        return replace(plan, waiting=_due(plan, [])[0])
    facts = _facts(suite) | {"cases": str(len(cases))}
    with Store._opened(folder) as store:
        waiting, rows, outdated = _due(plan, store._listing())
        return replace(plan, waiting=waiting, has_changes=bool(rows or outdated) or not store.meta().items() >= facts.items())


class Store:
    """An open results file. Use as a context manager. Every method raises InputError where the file cannot be used.

    Make one with `create` (to write, one at a time a folder) or `open` (to read, even while somebody writes).
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: ExitStack | None = None) -> None:
        self.path, self._connection, self._lock = path, connection, lock
        self._positions: dict[str, int] = {}
        self._environments: dict[str, int] = {}
        self._synced = time.monotonic()
        self._checked_version: int | None = None  # of the data, as SQLite counts what others write
        self._has_begun = False

    @classmethod
    def create(cls, folder: Path, suite: Suite) -> Self:
        """Return the store of `suite` in `folder`: a new one, or that of its results, also where the suite's file has changed since.

        Raises InputError where another run is using the folder, or it holds another suite's results, a damaged file, one of another schema
        version, or files that a report would overwrite, or cannot be written.
        """
        path, facts, is_there = folder / FILE_NAME, _facts(suite), _holds_results(folder, suite)
        with made_folder(folder), ExitStack() as on_error:
            on_error.enter_context(locked(folder))
            if not is_there and not _holds_results(folder, suite):  # another run may have come and gone
                make_file(path, lambda connection: lay_out(connection, facts))
            with naming(path):
                connection = files.connect_to_write(path)
            store = cls(path, connection, on_error.pop_all())
        with ExitStack() as on_error:
            on_error.enter_context(store)
            if store._all("SELECT 1 FROM started WHERE is_running LIMIT 1"):  # the command before died, for this one has the lock
                with store._writing() as connection:
                    connection.execute("UPDATE started SET deaths = deaths + 1, is_running = 0 WHERE is_running")
            if not store.meta().items() >= facts.items():
                with store._writing() as connection:
                    _set_meta(connection, facts)
            on_error.pop_all()
        return store

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Return the store in `folder`, to be read; raises InputError where there is none, or it is damaged, or of another version."""
        store = cls._opened(Path(folder))
        for name in _FACTS:
            if name not in store.meta():
                store.close()
                again = f"bench-mtl run SUITE --out {folder} writes it again"
                raise InputError(f"{store.path}: not a readable results file (no {name} in table meta): {again}")
        return store

    @classmethod
    def _opened(cls, folder: Path, *, is_checked: bool = True) -> Self:
        """`open`, also where the facts about the suite were set aside because they were damaged, or where anything is, to look at it."""
        path = folder / FILE_NAME
        if not is_file("results folder", path):
            missing = "there is no such folder" if not folder.exists() else f"there is no {FILE_NAME}"
            raise InputError(f"no results in {folder}: {missing} (make some with: bench-mtl run SUITE --out {folder})")
        with naming(path), ExitStack() as on_error:
            store = cls(path, files.connect_to_read(path))
            on_error.enter_context(store)
            if is_checked and (reason := files.broken_pages(path, store._connection)):
                raise unreadable(path, reason)
            with any_text(store._connection):
                version = dict(store._all("SELECT key, value FROM meta")).get("schema_version", "unknown")
            if version != str(SCHEMA_VERSION):
                other = "the release that wrote it reads it, and a run of the suite into a new folder is of this one"
                raise InputError(f"{path} has schema version {version}, but this bench_mtl reads version {SCHEMA_VERSION}: {other}")
            if not {(statement,) for statement in SCHEMA} <= set(store._all("SELECT sql FROM sqlite_master")):
                raise unreadable(path, "other tables than it should have")
            if is_checked:
                store.require_whole()
            on_error.pop_all()
        return store

    def close(self) -> None:
        try:
            if self._has_begun:
                with suppress(InputError, IncompleteError), self._writing(may_be_lost=True) as connection:
                    connection.execute("UPDATE started SET is_running = 0")
            with naming(self.path):
                if self._lock is None:
                    self._connection.close()
                else:
                    files.close_written(self._connection)
        finally:
            if self._lock is not None:
                self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """All that is read inside belongs together, whatever a run writes meanwhile."""
        if self._connection.in_transaction:
            yield self
            return
        with naming(self.path):
            self._connection.execute("BEGIN")
        try:
            yield self
        finally:
            self._connection.rollback()

    def require_whole(self, *, proofs: bool = False) -> None:
        """Raise InputError where anything is not what was written; of table `proof`, which is most of a file, only if `proofs`."""
        with naming(self.path), self.snapshot():
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._checked_version or proofs:  # what has been checked is so until somebody else writes
                self.refuse(damages(self._connection, proofs=proofs))
                self._checked_version = version

    def refuse(self, damaged: Iterable[Damage]) -> None:
        """Raise InputError that names what is damaged, if anything is."""
        names = list(dict.fromkeys(self.named(each) for each in damaged))
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            words = f"{', '.join(names[:_MOST_NAMED])}{more} {'is' if len(names) == 1 else 'are'} not what was written"
            raise InputError(f"{self.path}: damaged: {words}: bench-mtl check {self.path.parent} --drop sets aside what is damaged")

    def named(self, damaged: Damage) -> str:
        """Return what people call rows that are damaged."""
        table, number = damaged
        if table in ("meta", "environment"):
            return "what the file says of itself" if table == "meta" else f"environment {number}"
        query = "SELECT solver_label || ' on ' || problem_label FROM run WHERE id = ?"
        with suppress(sqlite3.Error), any_text(self._connection):
            for (label,) in self._connection.execute(query, (number,)):
                return f"row {number} ({one_line(str(label), _LONGEST_NAME)})"
        return f"row {number}, which is gone"

    def plan(self, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False) -> list[Case]:
        """Make `cases` the ones that the store lists, and return those that are still to be run; see `plan_suite` and `apply`."""
        return self.apply(Plan(cases, [], True, _again(force, retry_failed)))

    def apply(self, plan: Plan) -> list[Case]:
        """Make the cases of a plan the ones that the store lists, and return those that are still to be run, in their order.

        Rows of other cases stay, but are no longer listed; a listed row takes the labels that its case has now. Rows that another run has
        written since the plan was made count. A file that says all of this already is not touched.
        """
        waiting, rows, outdated = _due(plan, self._listing())
        self._positions = {case.key: place for place, case in enumerate(plan.cases)}
        if rows or outdated or self.meta().get("cases") != str(len(plan.cases)):
            with self._writing() as connection:
                connection.executemany("DELETE FROM listing WHERE case_key = ?", outdated)
                for row in rows:
                    list_run(connection, row)
                _set_meta(connection, {"cases": str(len(plan.cases))})
        return waiting

    def _listing(self) -> list[tuple[Any, ...]]:
        """Return the runs that count: (case key, run, position, problem label, solver label, status)."""
        columns = "listing.case_key, run_id, position, listing.problem_label, listing.solver_label, status"
        return self._checked(f"SELECT {columns} FROM listing JOIN run ON id = run_id ORDER BY run_id")

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store an environment that runs are made in from now on; return its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        if not self._environments:
            self._environments = dict(self._checked("SELECT description, id FROM environment"))
        if text not in self._environments:
            row = (max(self._environments.values(), default=0) + 1, datetime.now(UTC).isoformat(timespec="seconds"), text)
            with self._writing() as connection:
                insert(connection, "environment", [(*row, digest("environment", *row))])
            self._environments[text] = row[0]
        return self._environments[text]

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with all that belongs to it, in one transaction."""
        from bench_mtl.results.stored_proofs import proof_rows

        row = run_row(case, outcome, environment_id)
        with self._writing() as connection:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            run_id = connection.execute(f"INSERT INTO run ({names}, digest) VALUES ({marks}, x'')", tuple(row.values())).lastrowid or 0
            for table, rows in part_rows(outcome).items():
                insert(connection, table, ((run_id, *values) for values in rows))
            insert(connection, "proof", ((run_id, *proof, digest("proof", run_id, *proof)) for proof in proof_rows(outcome.proofs)))
            connection.execute("UPDATE run SET digest = ? WHERE id = ?", (run_digests(connection, run_id)[run_id], run_id))
            (last,) = connection.execute("SELECT coalesce(max(position), -1) + 1 FROM listing").fetchone()  # where nobody has planned it
            list_run(connection, (case.key, run_id, self._positions.get(case.key, last), row["problem_label"], row["solver_label"]))
            connection.execute("DELETE FROM started WHERE case_key = ?", (case.key,))

    def void_where_changed(self, case: Case, watch: Watch) -> None:
        """Raise IncompleteError where files of data have changed while a case ran, which is listed no longer: nobody knows what it saw."""
        if changed := watch.changed():
            with self._writing() as connection:
                connection.execute("DELETE FROM listing WHERE case_key = ?", (case.key,))
            raise IncompleteError(f"{changed[0]} has changed while {case.title} ran, whose row is void: restore it, and run again")

    def begin(self, key: str) -> None:
        """Mark a case as running until it has a row, or the store is closed."""
        with self._writing(may_be_lost=True) as connection:
            connection.execute("INSERT INTO started VALUES (?, 0, 1) ON CONFLICT (case_key) DO UPDATE SET is_running = 1", (key,))
        self._has_begun = True

    def deaths(self) -> dict[str, int]:
        """Return how many commands have died while a case ran that has no row yet, by its key; of those in which any has."""
        return dict(self._all("SELECT case_key, deaths FROM started WHERE deaths > 0"))

    @contextmanager
    def _writing(self, *, may_be_lost: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold one transaction open: all of it is written or nothing; it waits for no disk where a power cut may take it."""
        with naming(self.path):
            durable = not may_be_lost and time.monotonic() - self._synced > _SYNC_SECONDS
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
            if durable:
                self._synced = time.monotonic()

    def meta(self) -> dict[str, str]:
        """Return what the file says of itself."""
        return dict(self._checked(f"SELECT key, value FROM meta WHERE key <> '{META_DIGEST}'"))

    def environments(self) -> list[dict[str, Any]]:
        """Return the environments that listed runs were made in."""
        rows = self._checked(f"SELECT id, started, description FROM {_TABLES['environments']}")
        return [{"id": number, "started": started, **json.loads(text)} for number, started, text in rows]

    def finished(self) -> set[str]:
        """Return the keys of the cases that have a row that counts, whether the suite lists them now or not."""
        return {key for (key,) in self._checked("SELECT case_key FROM listing")}

    def statuses(self) -> list[Status]:
        """Return how the listed runs ended."""
        return [Status(status) for (status,) in self._checked("SELECT status FROM runs ORDER BY position")]

    def durations(self) -> list[tuple[str, str, float]]:
        """Problem label, solver label and seconds of the listed runs that took any."""
        return self._checked("SELECT problem_label, solver_label, wall_seconds FROM runs WHERE wall_seconds > 0")

    def runs(self) -> Any:
        """The listed runs as a DataFrame, in the order of the suite's cases."""
        return self._frame("runs")

    def rungs(self) -> Any:
        """What the listed runs of one-shot solvers were asked for as a DataFrame, run by run in order."""
        return self._frame("rungs")

    def places(self) -> dict[int, tuple[Place, ...]]:
        """Return where listed runs of status `error` raised, by the id of the run."""
        places: dict[int, tuple[Place, ...]] = {}
        for run_id, _, *place in self._checked(f"SELECT * FROM {_TABLES['places']}"):
            places[run_id] = (*places.get(run_id, ()), Place(*place))
        return places

    def samples(self) -> Any:
        """The samples of the listed runs as a DataFrame, run by run in the order they were made."""
        return self._frame("samples").astype({name: _DTYPES[kind] for name, kind in self.columns("samples").items()})

    def measures(self) -> Any:
        """The measures of the samples of the listed runs as a DataFrame: run_id, number, name (a category), value; in this order."""
        return self._frame("measures").astype({"run_id": "int64", "number": "int64", "name": "category", "value": "float64"})

    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of the solutions of the listed runs, run by run, part by part by name."""
        return tuple(
            Pattern(run_id, part, nonzeros, rank, (rows, columns), bits)
            for run_id, part, rows, columns, nonzeros, rank, bits in self._checked(f"SELECT * FROM {_TABLES['patterns']}")
        )

    def proofs(self, run_id: int) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """What proves the bounds of a run again, as `stored_proofs.read_proof` takes it; nothing of a file without proofs."""
        rows = self._all(f"SELECT * FROM proof WHERE run_id = {int(run_id)} ORDER BY number")
        self.refuse(("proof", run_id) for *row, stored in rows if stored != digest("proof", *row))
        return [row[2:-1] for row in rows]

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table that can be shown, such as "runs" or "samples", with their kinds: INTEGER, REAL or TEXT."""
        columns = self._all(f"PRAGMA table_info({table.removesuffix('s')})")
        return {name: kind for _, name, kind, *_ in columns if kind != "BLOB"}

    def chunks(self, table: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of one of the tables of `columns`, at most `size` at a time, in the order of `runs` and `samples`."""
        self.require_whole()
        rows = self.query(f"SELECT {', '.join(self.columns(table))} FROM {_TABLES[table]}")
        while chunk := list(islice(rows, size)):
            yield chunk

    def query(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield what a query gives, row by row, which nobody has checked."""
        with naming(self.path), closing(self._connection.execute(query)) as cursor:
            yield from cursor

    def _all(self, query: str) -> list[Any]:
        return list(self.query(query))

    def _checked(self, query: str) -> list[Any]:
        """Return what a query gives of a file that is as it was written."""
        with self.snapshot():
            self.require_whole()
            return self._all(query)

    def _frame(self, table: str) -> Any:
        import pandas as pd

        return pd.DataFrame(
            self._checked(f"SELECT {', '.join(self.columns(table))} FROM {_TABLES[table]}"), columns=list(self.columns(table))
        )


_DTYPES = {"INTEGER": "int64", "REAL": "float64"}


def lay_out(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Make the tables of a new file that says `facts` of itself, in the transaction that is open: `executescript` would end it."""
    for statement in SCHEMA:
        connection.execute(statement)
    _set_meta(connection, {**facts, "schema_version": str(SCHEMA_VERSION)})


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows that have a value for each column."""
    marks = ", ".join("?" for _ in connection.execute(f"PRAGMA table_info({table})"))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def list_run(connection: sqlite3.Connection, row: tuple[Any, ...]) -> None:
    """Make a run the one of its case that counts: (case key, run, position, problem label, solver label)."""
    connection.execute("INSERT OR REPLACE INTO listing VALUES (?, ?, ?, ?, ?, ?)", (*row, digest("listing", *row)))


def _set_meta(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
    seal_meta(connection)


def _facts(suite: Suite) -> dict[str, str]:
    """Return what `meta` says of a suite."""
    return dict(zip(_FACTS, (suite.name, suite.text, suite.description, json.dumps(suite.targets)), strict=True))


def _due(plan: Plan, listing: Sequence[tuple[Any, ...]]) -> tuple[list[Case], list[tuple[Any, ...]], list[tuple[str]]]:
    """Return what a plan comes to: the cases to be run, rows of the listing that have to be others, keys of runs that count no more."""
    wanted = {case.key: (place, case.instance.label, case.solver_label) for place, case in enumerate(plan.cases)}
    allowed = wanted.keys() if plan.only is None else wanted.keys() & plan.only
    outdated = {key for key, *_, status in listing if key in allowed and status in plan.again}
    staying = [row[:-1] for row in listing if row[0] not in outdated]
    # A run of a case that is not wanted keeps its labels, without a place.
    rows = [(key, run_id, *wanted.get(key, (None, *labels))) for key, run_id, _, *labels in staying]
    done = {key for key, *_ in staying}
    waiting = [case for case in plan.cases if case.key in allowed and case.key not in done]
    return waiting, [row for row, before in zip(rows, staying, strict=True) if row != before], [(key,) for key in outdated]


def require_free(folder: Path) -> None:
    """Raise InputError for a folder that holds what new results, or their report, would overwrite or take for theirs."""
    reasons = dict.fromkeys(REPORT_NAMES, f"but no {FILE_NAME}: the report would overwrite it; choose another folder with --out")
    gone = "of results that are gone: move it away, or choose another folder with --out"
    for name, reason in (reasons | {f"{FILE_NAME}{ending}": gone for ending in UNFINISHED}).items():
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} {reason}")


def require_no_others(folder: Path) -> None:
    """Raise InputError for a folder that holds files, but none of results or a report. Names that begin with a dot do not count."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if is_dir("output folder", folder) else []
    if names and not any(name in REPORT_NAMES or name.startswith("results.") for name in names):
        raise InputError(f"--out: {folder} holds {names[0]}, and neither results nor a report: choose another folder, or move it away")


def _holds_results(folder: Path, suite: Suite) -> bool:
    """Tell whether `folder` holds results of `suite`. What is damaged or somebody else's is refused before it is opened to be written."""
    if not exists("output folder", folder / FILE_NAME):
        require_free(folder)
        require_no_others(folder)
        return False
    with Store._opened(folder) as store:
        name = store.meta().get("suite_name", suite.name)
    if name != suite.name:
        raise InputError(f"{folder} already holds the results of suite '{name}': choose another folder with --out")
    return True
