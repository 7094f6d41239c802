"""The tables of a results file, which `docs/results.md` explains column by column."""

from __future__ import annotations

SCHEMA_VERSION = 9

#: What the clock of a run has counted: all that its user waits for; the steps of a run for its curve, whose certificates are on no clock;
#: and, in rows from before there were these two, the steps of any run.
TIMED, TRACED, OLDER = "timed", "traced", "older"

#: What belongs to a run and is in its digest: tables with the columns that put their rows in order, and with the others.
_PARTS = {
    "sample": (
        "number",
        "number INTEGER NOT NULL, seconds REAL NOT NULL, iteration INTEGER NOT NULL, passes REAL NOT NULL, primal REAL NOT NULL, "
        "dual REAL NOT NULL, relative_gap REAL NOT NULL, infeasibility REAL NOT NULL, asked_tolerance REAL",
    ),
    "measure": ("number, name", "number INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL"),
    "pattern": (
        "part",
        "part TEXT NOT NULL, rows INTEGER NOT NULL, columns INTEGER NOT NULL, nonzeros INTEGER NOT NULL, rank INTEGER, bits BLOB NOT NULL",
    ),
    "rung": (
        "number",
        "number INTEGER NOT NULL, asked_tolerance REAL NOT NULL, seconds REAL NOT NULL, setup_seconds REAL, ending TEXT NOT NULL",
    ),
    "place": ("number", "number INTEGER NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL, function TEXT NOT NULL, source TEXT NOT NULL"),
}
PARTS = {name: order for name, (order, _) in _PARTS.items()}

#: Tables of whose rows each has a digest of its own, with the column that damaged rows are named by.
SINGLE = {"environment": "id", "listing": "run_id", "proof": "run_id"}

_RUN = (
    "id INTEGER PRIMARY KEY, case_key TEXT NOT NULL, environment_id INTEGER NOT NULL REFERENCES environment (id), problem TEXT NOT NULL, "
    "problem_label TEXT NOT NULL, instance_key TEXT NOT NULL, data TEXT NOT NULL, data_fingerprint TEXT NOT NULL, "
    "parameters TEXT NOT NULL, seed INTEGER, dimensions TEXT NOT NULL, notes TEXT NOT NULL, solver TEXT NOT NULL, "
    "solver_label TEXT NOT NULL, options TEXT NOT NULL, solver_version TEXT NOT NULL, repetition INTEGER NOT NULL, "
    "threads INTEGER NOT NULL, clock TEXT NOT NULL, target REAL NOT NULL, limit_seconds REAL, limits TEXT NOT NULL, status TEXT NOT NULL, "
    "reason TEXT NOT NULL, primal REAL, dual REAL, relative_gap REAL, infeasibility REAL, iterations INTEGER, passes REAL, "
    "build_seconds REAL NOT NULL, compile_seconds REAL NOT NULL, setup_seconds REAL NOT NULL, solve_seconds REAL NOT NULL, "
    "certify_seconds REAL NOT NULL, test_seconds REAL NOT NULL, wall_seconds REAL, peak_memory_mib REAL, disturbances TEXT NOT NULL, "
    "info TEXT NOT NULL"
)

#: Before each column but the first of a statement.
_NEXT = ",\n    "

#: The columns of a run as view `runs` has them: with the labels of the suite as it is now.
_NAMES = [column.split()[0] for column in _RUN.split(", ")]
_SHOWN = _NEXT.join(f"{'listing' if name in ('problem_label', 'solver_label') else 'run'}.{name}" for name in _NAMES)


def _table(name: str, columns: str, key: str = "") -> str:
    lines = columns.replace(", ", _NEXT) + (f"{_NEXT}PRIMARY KEY ({key})" if key else "")
    return f"CREATE TABLE {name} (\n    {lines}\n){' WITHOUT ROWID' if name != 'run' else ''}"


def _part(name: str, columns: str, key: str) -> str:
    return _table(name, f"run_id INTEGER NOT NULL REFERENCES run (id), {columns}", f"run_id, {key}")


SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL, digest BLOB NOT NULL)",
    _table("run", f"{_RUN}, digest BLOB NOT NULL"),
    _table(
        "listing",
        "case_key TEXT PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run (id), position INTEGER, problem_label TEXT NOT NULL, "
        "solver_label TEXT NOT NULL, digest BLOB NOT NULL",
    ),
    *(_part(name, columns, order) for name, (order, columns) in _PARTS.items()),
    _part("proof", "number INTEGER NOT NULL, point BLOB NOT NULL, dual BLOB, bound_point BLOB, digest BLOB NOT NULL", "number"),
    "CREATE TABLE started (case_key TEXT PRIMARY KEY, deaths INTEGER NOT NULL, is_running INTEGER NOT NULL) WITHOUT ROWID",
    f"""CREATE VIEW runs AS
    SELECT listing.position,
    {_SHOWN}
    FROM listing JOIN run ON run.id = listing.run_id
    WHERE listing.position IS NOT NULL
    ORDER BY listing.position""",
)
