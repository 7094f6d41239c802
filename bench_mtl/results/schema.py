"""The tables of a results file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from bench_mtl.results.digests import Part
from bench_mtl.results.sqlite_store import ADDED_TABLES, COMMON_TABLES, lay_out_common

SCHEMA_VERSION = 7

#: The rows of a run, each table of which has a digest a run.
RUN, SAMPLE, MEASURE, PATTERN, PROOF, RUNG, PLACE = RUN_PARTS = (
    Part("run", "id"),
    Part("sample", "run_id", "number", in_words=True),
    Part("measure", "run_id", "number, name", in_words=True),
    Part("pattern", "run_id", "part"),
    Part("proof", "run_id", "number"),
    Part("rung", "run_id", "number"),
    Part("place", "run_id", "number"),
)

#: What files of schema 6 have not got.
_SINCE_7 = (
    """CREATE TABLE place (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    function TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID""",
)

#: What files of schema 5 have not got.
_SINCE_6 = (
    *_SINCE_7,
    """CREATE TABLE rung (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    asked_tolerance REAL NOT NULL,
    seconds REAL NOT NULL,
    setup_seconds REAL,
    ending TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID""",
)

#: What files of schema 4 have not got.
NEW_TABLES = (
    *_SINCE_6,
    *ADDED_TABLES,
    """CREATE TABLE proof (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    point BLOB NOT NULL,
    dual BLOB,
    bound_point BLOB,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID""",
)

#: What files of earlier versions have not got, by their version.
LACKING: Mapping[int, tuple[str, ...]] = {4: NEW_TABLES, 5: _SINCE_6, 6: _SINCE_7}

SCHEMA = (
    *COMMON_TABLES,
    """CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    case_key TEXT NOT NULL,
    position INTEGER,
    listed INTEGER NOT NULL DEFAULT 1,
    superseded INTEGER NOT NULL DEFAULT 0,
    environment_id INTEGER NOT NULL REFERENCES environment (id),
    problem TEXT NOT NULL,
    problem_label TEXT NOT NULL,
    instance_key TEXT NOT NULL,
    data TEXT NOT NULL,
    data_fingerprint TEXT NOT NULL DEFAULT '',
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
    limits TEXT NOT NULL DEFAULT '{}',
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
    wall_seconds REAL,
    peak_memory_mib REAL,
    info TEXT NOT NULL
)""",
    "CREATE UNIQUE INDEX run_of_case ON run (case_key) WHERE superseded = 0",
    """CREATE TABLE sample (
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
) WITHOUT ROWID""",
    """CREATE TABLE pattern (
    run_id INTEGER NOT NULL REFERENCES run (id),
    part TEXT NOT NULL,
    rows INTEGER NOT NULL,
    columns INTEGER NOT NULL,
    nonzeros INTEGER NOT NULL,
    rank INTEGER,
    bits BLOB NOT NULL,
    PRIMARY KEY (run_id, part)
) WITHOUT ROWID""",
    """CREATE TABLE measure (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run_id, number, name),
    FOREIGN KEY (run_id, number) REFERENCES sample (run_id, number)
) WITHOUT ROWID""",
)


def lay_out(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Make the tables of a new file that says `facts` of itself, in the transaction that is open."""
    lay_out_common(connection, (*SCHEMA, *NEW_TABLES), {**facts, "schema_version": str(SCHEMA_VERSION)})


def has_its_tables(connection: sqlite3.Connection, version: int) -> bool:
    """Whether the tables are those of a file of this version, column by column."""
    lacking = LACKING.get(version, ())
    with closing(sqlite3.connect(":memory:")) as model:
        for statement in (*SCHEMA, *NEW_TABLES):
            if statement not in lacking:
                model.execute(statement)
        tables = [name for (name,) in model.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        queries = [f"PRAGMA table_info({table})" for table in tables]
        return all(connection.execute(query).fetchall() == model.execute(query).fetchall() for query in queries)
