"""Bring results files of schema 6 and 7 over to schema 8: `python -m benchmarks.bring_over reports/*/results.sqlite`."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from bench_mtl.results.database import insert, lay_out
from bench_mtl.results.digests import seal
from bench_mtl.results.schema import PARTS, RUN_COLUMNS


def bring_over(path: Path) -> None:
    """Write the file anew beside itself, and put it in the place of the old one."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as old, closing(sqlite3.connect(part)) as new:
        tables = {name for (name,) in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        with new:
            facts = dict(old.execute("SELECT key, value FROM meta WHERE key NOT IN ('schema_version', 'sealed_since')"))
            lay_out(new, facts)
            insert(new, "environment", old.execute("SELECT id, started, description, x'' FROM environment ORDER BY id"))
            insert(new, "run", old.execute(f"SELECT {', '.join(RUN_COLUMNS)}, x'' FROM run ORDER BY id"))
            for table in PARTS:
                if table in tables:
                    insert(new, table, old.execute(f"SELECT * FROM {table}"))
            if "proof" in tables:
                insert(new, "proof", old.execute("SELECT run_id, number, point, dual, bound_point, x'' FROM proof"))
            place = "CASE WHEN listed THEN position END"
            query = f"SELECT case_key, id, {place}, problem_label, solver_label, x'' FROM run WHERE superseded = 0"
            insert(new, "listing", old.execute(query))
            if "started" in tables:
                insert(new, "started", old.execute("SELECT case_key, deaths, is_running FROM started"))
            seal(new)
        new.execute("PRAGMA page_size = 2048")  # most tables of these files are smaller than a page of 4096 bytes
        new.execute("VACUUM")
    part.replace(path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        size = Path(name).stat().st_size
        bring_over(Path(name))
        print(f"{name}: {size} -> {Path(name).stat().st_size} bytes")
