"""The tables of a results file, and how a file of an earlier version becomes one of this."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing

SCHEMA_VERSION = 4

_RUN_COLUMNS = """(
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
)"""
_RUN_INDEX = "CREATE UNIQUE INDEX run_of_case ON run (case_key) WHERE superseded = 0"

_PATTERN_TABLE = """CREATE TABLE pattern (
    run_id INTEGER NOT NULL REFERENCES run (id),
    part TEXT NOT NULL,
    rows INTEGER NOT NULL,
    columns INTEGER NOT NULL,
    nonzeros INTEGER NOT NULL,
    rank INTEGER,
    bits BLOB NOT NULL,
    PRIMARY KEY (run_id, part)
) WITHOUT ROWID"""

_MEASURE_TABLE = """CREATE TABLE measure (
    run_id INTEGER NOT NULL REFERENCES run (id),
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run_id, number, name),
    FOREIGN KEY (run_id, number) REFERENCES sample (run_id, number)
) WITHOUT ROWID"""

SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE run {_RUN_COLUMNS};
{_RUN_INDEX};
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
{_PATTERN_TABLE};
{_MEASURE_TABLE};
"""


def lay_out(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Make the tables of a new file that says `facts` of itself, in the transaction that is open: `executescript` would end it."""
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", {**facts, "schema_version": str(SCHEMA_VERSION)}.items())


def has_its_tables(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of `SCHEMA`, column by column."""
    with closing(sqlite3.connect(":memory:")) as model:
        lay_out(model, {})
        tables = [name for (name,) in model.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        queries = [f"PRAGMA table_info({table})" for table in tables]
        return all(connection.execute(query).fetchall() == model.execute(query).fetchall() for query in queries)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from `version` to `SCHEMA_VERSION`, all of it or nothing.

    Raises
    ------
    KeyError : there is no way from that version.
    """
    steps = [_STEPS[step] for step in range(version, SCHEMA_VERSION)]
    if not steps:
        return
    connection.execute("PRAGMA foreign_keys = OFF")  # a table that others refer to is replaced
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for step in steps:
            step(connection)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION),))
    connection.execute("PRAGMA foreign_keys = ON")


def _from_1_to_2(connection: sqlite3.Connection) -> None:
    """Cases may have several rows, of which one counts; what is new has its default, or is unknown. Equal environments become one."""
    columns = ", ".join(row[1] for row in connection.execute("PRAGMA table_info(run)"))
    connection.execute(f"CREATE TABLE run_2 {_RUN_COLUMNS}")
    connection.execute(f"INSERT INTO run_2 ({columns}) SELECT {columns} FROM run ORDER BY id")
    connection.execute("DROP TABLE run")
    connection.execute("ALTER TABLE run_2 RENAME TO run")
    connection.execute(_RUN_INDEX)
    first = "(SELECT min(same.id) FROM environment AS same JOIN environment AS own USING (description) WHERE own.id = environment_id)"
    connection.execute(f"UPDATE run SET environment_id = {first}")
    connection.execute("DELETE FROM environment WHERE id NOT IN (SELECT min(id) FROM environment GROUP BY description)")


def _from_2_to_3(connection: sqlite3.Connection) -> None:
    """Runs may have patterns of their solutions; those that were made before have none."""
    connection.execute(_PATTERN_TABLE)


def _from_3_to_4(connection: sqlite3.Connection) -> None:
    """Samples may have measures of their points; those that were made before have none."""
    connection.execute(_MEASURE_TABLE)


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _from_1_to_2, 2: _from_2_to_3, 3: _from_3_to_4}
