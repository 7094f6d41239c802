"""The store of a suite's results: a row per run, per certified sample and measure of it, per part of a solution; the suite's text and the
environments once.

One transaction writes a run with its samples, measures and patterns. Rows are never deleted: a run that is made again supersedes the row
before, and rows of cases that the suite no longer lists wait for the day that it lists them again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists, is_file
from bench_mtl.core.types import Place, Status
from bench_mtl.engine.suite import Case, Suite
from bench_mtl.results.digests import ENVIRONMENT, Part, differing, digests_of_words, put, words
from bench_mtl.results.files import (
    UNFINISHED,
    FolderLock,
    connect_to_read,
    decoding,
    naming,
    require_intact,
    require_own_wal,
    require_regular,
)
from bench_mtl.results.rows import Outcome, measure_rows, pattern_rows, place_rows, run_row, rung_rows, sample_rows
from bench_mtl.results.schema import (
    LACKING,
    MEASURE,
    NEW_TABLES,
    PATTERN,
    PLACE,
    PROOF,
    RUN,
    RUN_PARTS,
    RUNG,
    SAMPLE,
    SCHEMA,
    SCHEMA_VERSION,
    has_its_tables,
    lay_out,
)
from bench_mtl.results.sqlite_store import SqliteStore, insert
from bench_mtl.results.stored_patterns import PATTERN_COLUMNS, Pattern, read_pattern

FILE_NAME = "results.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "report.html", "runs.csv", "samples.csv", "cover.svg", "tables", "figures")

#: What `meta` says of the suite in every file.
_FACTS = ("suite_name", "suite_text", "description", "targets")


@dataclass(frozen=True)
class Plan:
    """What is to be done in a results folder so that it lists the cases of a suite, made by `plan_suite`."""

    cases: Sequence[Case]
    waiting: list[Case]
    """The cases that are still to be run, in their order."""
    has_changes: bool
    """Whether the file has to be written to, even where no case is to be run."""
    changes: list[tuple[Any, ...]]
    """What rows have to say that they do not: (listed, position, problem label, solver label, id)."""
    outdated: list[tuple[int]]
    """Ids of rows that are to be superseded."""
    again: frozenset[Status]
    """Which statuses make a case run again."""
    basis: list[tuple[Any, ...]]
    """The rows that it was made from."""
    only: frozenset[str] | None = None
    """Keys of the cases that may be run now; None for all of them."""


def plan_suite(
    folder: Path,
    suite: Suite,
    cases: Sequence[Case],
    *,
    force: bool = False,
    retry_failed: bool = False,
    only: Collection[Case] | None = None,
) -> Plan:
    """Return what `Store.apply` has to do in `folder` before `cases` are run; change nothing.

    Parameters
    ----------
    force : run everything again; the rows there are, are superseded at once, so that such a run is resumed without `force`.
    retry_failed : run again what ended as wrong, crashed or error, likewise.
    only : those of the cases that may be run now; the store lists the others too, whose rows stay as they are.

    Raises
    ------
    InputError : the folder holds a results file that cannot be read.
    """
    again = _run_again(force, retry_failed)
    keys = None if only is None else frozenset(case.key for case in only)
    if not exists("output folder", folder / FILE_NAME):
        return _plan(cases, again, [], keys, is_listed=False)
    with Store._opened(folder) as store:
        plan = store._planned(cases, again, keys)
        return replace(plan, has_changes=plan.has_changes or not store.meta().items() >= _facts(suite).items())


class Store(SqliteStore):
    """An open results file. Use as a context manager. Every method raises InputError where the file cannot be used.

    Make one with `create` (to write, one at a time a folder) or `open` (to read, even while somebody writes).
    """

    schema_version, unsealed_version = SCHEMA_VERSION, 4
    parts, added_tables, lacking = RUN_PARTS, NEW_TABLES, LACKING
    tables = (*SCHEMA, *NEW_TABLES)
    label = "solver_label || ' on ' || problem_label"

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FolderLock | None = None) -> None:
        super().__init__(path, connection, lock)
        self._positions: dict[str, int] = {}

    @classmethod
    def create(cls, folder: Path, suite: Suite) -> Self:
        """Return the store of `suite` in `folder`: a new one, or the one that holds results of this suite already.

        A suite whose file has changed since goes on too: its plan tells what of it is done.

        Raises
        ------
        InputError : another run is using the folder, or it holds another suite's results, or a damaged file, or one of another schema
            version, or files that a report would overwrite, or it cannot be written. What was there is as it was.
        """
        facts = _facts(suite)
        store = cls._opened_to_write(
            folder / FILE_NAME, lambda: _holds_results(folder, suite), lambda connection: lay_out(connection, facts)
        )
        try:
            store.seal()
            store._bury()
            if not store.meta().items() >= facts.items():
                with store._writing() as connection:
                    store._set_meta(connection, facts)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Return the store in `folder`, to be read.

        Raises
        ------
        InputError : there is none, or it is damaged, or of another schema version. Nothing is changed, then or otherwise.
        """
        store = cls._opened(folder)
        try:
            missing = [name for name in _FACTS if name not in store.meta()]
            if missing:
                raise InputError(
                    f"{store.path}: not a readable results file (no {missing[0]} in table meta): "
                    f"bench-mtl run SUITE --out {folder} writes it again"
                )
            return store
        except BaseException:
            store.close()
            raise

    @classmethod
    def _opened(cls, folder: Path) -> Self:
        """`open`, also where the facts about the suite were set aside because they were damaged."""
        path = folder / FILE_NAME
        with naming(path):
            require_regular(path)
        if not is_file("results folder", path):
            missing = "there is no such folder" if not folder.exists() else f"there is no {FILE_NAME}"
            raise InputError(f"no results in {folder}: {missing} (make some with: bench-mtl run SUITE --out {folder})")
        with naming(path):
            require_own_wal(path)
            store = cls(path, connect_to_read(path))
            try:
                require_intact(path, store._connection)
                store._require_version()
                store.meta()
                if not has_its_tables(store._connection, int(store.version)):
                    raise InputError(f"{path}: not a readable results file (other columns than it should have): move it away and run again")
                return store
            except BaseException:
                store._connection.close()
                raise

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """All that is read inside belongs together, whatever a run writes meanwhile."""
        with naming(self.path):
            self._connection.execute("BEGIN")
        try:
            yield self
        finally:
            self._connection.rollback()

    def plan(self, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False) -> list[Case]:
        """Make `cases` the ones that the store lists, and return those that are still to be run; see `plan_suite` and `apply`."""
        return self.apply(self._planned(cases, _run_again(force, retry_failed)))

    def apply(self, plan: Plan) -> list[Case]:
        """Make the cases of a plan the ones that the store lists, and return those that are still to be run, in their order.

        Rows of other cases are kept, but no longer listed. A listed row takes the labels that its case has now. A file that says all of
        this already is not touched. Where another run has written rows since the plan was made, it is made anew.
        """
        if self._held() != plan.basis:
            plan = self._planned(plan.cases, plan.again, plan.only)
        self._positions = {case.key: place for place, case in enumerate(plan.cases)}
        if plan.has_changes:
            with self._writing() as connection:
                connection.executemany("UPDATE run SET superseded = 1, listed = 0, position = NULL WHERE id = ?", plan.outdated)
                connection.executemany(
                    "UPDATE run SET listed = ?, position = ?, problem_label = ?, solver_label = ? WHERE id = ?", plan.changes
                )
                put(connection, RUN, [row[-1] for row in (*plan.outdated, *plan.changes)])
                self._set_meta(connection, {"cases": str(len(plan.cases))})
        return plan.waiting

    def _planned(self, cases: Sequence[Case], again: frozenset[Status], only: frozenset[str] | None = None) -> Plan:
        return _plan(cases, again, self._held(), only, is_listed=self.meta().get("cases") == str(len(cases)))

    def _held(self) -> list[tuple[Any, ...]]:
        """Return the rows that count: (id, key, status, listed, position, problem label, solver label)."""
        self._require(RUN)
        return self._all("SELECT id, case_key, status, listed, position, problem_label, solver_label FROM run WHERE superseded = 0")

    def environments(self) -> list[dict[str, Any]]:
        """Return the environments that listed runs were made in."""
        self._require(RUN)
        return self._described(f"id IN (SELECT environment_id FROM run WHERE {_IS_LISTED})")

    def finished(self) -> set[str]:
        """Keys of the cases that have a row that counts, whether the suite lists them now or not."""
        self._require(RUN)
        return {key for (key,) in self._all("SELECT case_key FROM run WHERE superseded = 0")}

    def statuses(self) -> list[Status]:
        """How the listed runs ended."""
        self._require(RUN)
        rows = self._all(f"SELECT status FROM run WHERE {_IS_LISTED} {_IN_ORDER}")
        with decoding(self.path):
            return [Status(status) for (status,) in rows]

    def durations(self) -> list[tuple[str, str, float]]:
        """Problem label, solver label and seconds of the listed runs that took any."""
        self._require(RUN)
        return self._all(f"SELECT problem_label, solver_label, wall_seconds FROM run WHERE {_IS_LISTED} AND wall_seconds > 0")

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with its samples, measures and patterns, in one transaction."""
        from bench_mtl.results.stored_proofs import proof_rows

        row = run_row(case, outcome, environment_id) | {"position": self._positions.get(case.key)}
        with self._writing() as connection:
            run_id = insert(connection, "run", row)
            samples = ((run_id, *sample) for sample in sample_rows(outcome.record.samples))
            connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", samples)
            measures = ((run_id, *measure) for measure in measure_rows(outcome.record.samples))
            connection.executemany("INSERT INTO measure VALUES (?, ?, ?, ?)", measures)
            patterns = ((run_id, *pattern) for pattern in pattern_rows(outcome.patterns))
            connection.executemany("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?)", patterns)
            proofs = ((run_id, *proof) for proof in proof_rows(outcome.proofs))
            connection.executemany("INSERT INTO proof VALUES (?, ?, ?, ?, ?)", proofs)
            rungs = ((run_id, *rung) for rung in rung_rows(outcome.record.rungs))
            connection.executemany("INSERT INTO rung VALUES (?, ?, ?, ?, ?, ?)", rungs)
            places = ((run_id, *place) for place in place_rows(outcome.record.places))
            connection.executemany("INSERT INTO place VALUES (?, ?, ?, ?, ?, ?)", places)
            self._put_row(connection, run_id, case.key)

    def runs(self) -> Any:
        """The listed runs as a DataFrame, in the order of the suite's cases."""
        import pandas as pd

        self._require(RUN)
        return pd.DataFrame(self._all(self._query("runs")), columns=list(self.columns("runs")))

    def rungs(self) -> Any:
        """What the listed runs of one-shot solvers were asked for as a DataFrame, run by run in order; nothing of files of schema 5."""
        import pandas as pd

        return pd.DataFrame([row for rows in self.chunks("rungs", _MANY) for row in rows], columns=list(self.columns("rungs")))

    def places(self) -> dict[int, tuple[Place, ...]]:
        """Return where listed runs of status `error` raised, by the id of the run; none of files of earlier schemas."""
        found: dict[int, tuple[Place, ...]] = {}
        for run_id, _, *place in (row for rows in self.chunks("places", _MANY) for row in rows):
            found[run_id] = (*found.get(run_id, ()), Place(*place))
        return found

    def samples(self) -> Any:
        """The samples of the listed runs as a DataFrame, run by run in the order they were made."""
        import pandas as pd

        table = self._words(SAMPLE, {})
        return pd.DataFrame({name: table[name].copy() for name in table.dtype.names or ()}, copy=False)

    def measures(self) -> Any:
        """The measures of the samples of the listed runs as a DataFrame, run by run and sample by sample: run_id, number, name, value.

        Names are categories, in the order of the alphabet.
        """
        import numpy as np
        import pandas as pd

        names: dict[str, int] = {}
        table = self._words(MEASURE, names)
        ordered = sorted(names)
        of_words = np.array([names[name] for name in ordered], np.int64)
        places = np.argsort(of_words)
        codes = places[np.searchsorted(of_words, table["name"], sorter=places)] if ordered else np.empty(0, np.int64)
        columns = {name: table[name].copy() for name in table.dtype.names or ()}
        named = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(ordered))
        return pd.DataFrame(columns | {"name": named}, copy=False)

    def _words(self, part: Part, names: dict[str, int]) -> Any:
        """Return the rows of a part of the listed runs as an array, in which a name has its word of `names`."""
        import numpy as np

        with self._reading():
            self._require(RUN)
            with naming(self.path), decoding(self.path):
                try:
                    table = words(self._connection, part, names=names)
                except (ValueError, TypeError, OverflowError, sqlite3.OperationalError):
                    self._require(part)  # which says whose rows these are
                    raise
            if self._digests is None:
                self._require(part)
            elif part not in self._checked:
                self._refuse(differing(part, digests_of_words(part, table), self._digests))
                self._checked.add(part)
            listed = np.array(self._all(f"SELECT id FROM run WHERE {_IS_LISTED}"), np.int64).ravel()
        return table[np.isin(table["run_id"], listed)]

    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of the solutions of the listed runs, run by run, part by part by name; a damaged one is left out."""
        self._require(RUN, PATTERN)
        found = (read_pattern(*row) for row in self.query(f"SELECT {', '.join(PATTERN_COLUMNS)} FROM {_LISTED_ROWS['patterns']}"))
        return tuple(pattern for pattern in found if pattern is not None)

    def proofs(self, run_id: int) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """What proves the bounds of a run again, as `stored_proofs.read_proof` takes it; nothing in a file of schema version 4."""
        if not self.is_sealed:
            return []
        self._require(PROOF)
        return self._all(f"SELECT point, dual, bound_point FROM proof WHERE run_id = {int(run_id)} ORDER BY number")

    def columns(self, table: str) -> dict[str, str]:
        """Names of the columns of the listed "runs", "samples", "measures", "environments", "patterns", "rungs" or "places", with their
        kinds: INTEGER, REAL or TEXT.

        The bits of a pattern, which no table can show, are not among them.
        """
        columns = {name: kind for _, name, kind, *_ in self._all(f"PRAGMA table_info({table.removesuffix('s')})")}
        columns = columns or dict(_LATER_COLUMNS.get(table, {}))
        return {name: kind for name, kind in columns.items() if name not in _OF_THE_LISTING and kind != "BLOB"}

    def _query(self, table: str) -> str:
        columns = ", ".join(self.columns(table))
        return f"SELECT {columns} FROM {_LISTED_ROWS[table]}"

    def chunks(self, table: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of one of the tables of `columns`, at most `size` at a time, in the order of `runs` and `samples`."""
        self._require(RUN, _PART_OF[table])
        if not self.has_table(_PART_OF[table].table):
            return
        with naming(self.path), closing(self._connection.execute(self._query(table))) as cursor:
            while rows := cursor.fetchmany(size):
                yield rows


#: The runs that count: of cases that the suite lists now, the last one each.
_IS_LISTED = "listed = 1 AND superseded = 0"

_IN_ORDER = "ORDER BY position IS NULL, position, id"

#: Columns that say which runs are listed, and in which order: those that are read say so by being there.
_OF_THE_LISTING = ("position", "listed", "superseded")

_PART_OF = {
    "environments": ENVIRONMENT, "runs": RUN, "samples": SAMPLE, "measures": MEASURE, "patterns": PATTERN, "rungs": RUNG, "places": PLACE
}  # fmt: skip

#: The columns of the tables that earlier files have not got.
_LATER_COLUMNS = {
    "rungs": {
        "run_id": "INTEGER", "number": "INTEGER", "asked_tolerance": "REAL", "seconds": "REAL", "setup_seconds": "REAL", "ending": "TEXT"
    },
    "places": {"run_id": "INTEGER", "number": "INTEGER", "file": "TEXT", "line": "INTEGER", "function": "TEXT", "source": "TEXT"},
}  # fmt: skip

#: Rows that are read at a time.
_MANY = 10_000

_LISTED_ROWS = {
    "runs": f"run WHERE {_IS_LISTED} {_IN_ORDER}",
    "samples": f"sample WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number",
    "measures": f"measure WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number, name",
    "patterns": f"pattern WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, part",
    "rungs": f"rung WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number",
    "places": f"place WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number",
    "environments": f"environment WHERE id IN (SELECT environment_id FROM run WHERE {_IS_LISTED}) ORDER BY id",
}


def _facts(suite: Suite) -> dict[str, str]:
    """Return what `meta` says of a suite."""
    return {
        "suite_name": suite.name,
        "suite_text": suite.text,
        "description": suite.description,
        "targets": json.dumps(suite.targets),
    }


def _run_again(force: bool, retry_failed: bool) -> frozenset[Status]:
    """Return the statuses that make a case run again."""
    return frozenset(status for status in Status if force or (retry_failed and status.is_failure))


def _plan(
    cases: Sequence[Case], again: frozenset[Status], held: list[tuple[Any, ...]], only: frozenset[str] | None, *, is_listed: bool
) -> Plan:
    """Return the plan for a file whose counting rows are `held`; `is_listed` tells whether it counts as many cases already."""
    wanted = {case.key: (1, place, case.instance.label, case.solver_label) for place, case in enumerate(cases)}
    allowed = wanted.keys() if only is None else wanted.keys() & only
    outdated = [(row[0],) for row in held if row[1] in allowed and row[2] in again]
    kept = [row for row in held if not (row[1] in allowed and row[2] in again)]
    # A row of a case that is not wanted has to say that it is not listed, with the labels it has.
    changes = [(*wish, row[0]) for row in kept if (wish := wanted.get(row[1], (0, None, *row[5:]))) != row[3:]]
    done = {row[1] for row in kept}
    return Plan(
        cases=cases,
        waiting=[case for case in cases if case.key in allowed and case.key not in done],
        has_changes=bool(changes or outdated) or not is_listed,
        changes=changes,
        outdated=outdated,
        again=again,
        basis=held,
        only=only,
    )


def require_free(folder: Path) -> None:
    """Raise InputError for a folder that holds what new results, or their report, would overwrite or take for theirs."""
    for name in REPORT_NAMES:
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another folder with --out")
    for name in (f"{FILE_NAME}{ending}" for ending in UNFINISHED):
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} of results that are gone: move it away, or choose another folder with --out")


def _holds_results(folder: Path, suite: Suite) -> bool:
    """Tell whether `folder` holds results of `suite`. What is damaged or somebody else's is refused before it is opened to be written."""
    if not exists("output folder", folder / FILE_NAME):
        require_free(folder)
        return False
    with Store._opened(folder) as store:
        store.require_whole()
        held = store.meta().get("suite_name", suite.name)
    if held != suite.name:
        raise InputError(f"{folder} already holds the results of suite '{held}': choose another folder with --out")
    return True
