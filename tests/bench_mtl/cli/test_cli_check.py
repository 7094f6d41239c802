"""`bench-mtl check`: every folder is looked at, and the exit code is that of the worst."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def check(*arguments: object) -> tuple[int, list[str], list[str]]:
    command = [sys.executable, "-m", "bench_mtl", "check", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout.splitlines(), result.stderr.splitlines()


def test_every_folder_is_looked_at(tmp_path: Path) -> None:
    whole, damaged, none = (tmp_path / name for name in ("whole", "damaged", "none"))
    for folder in (whole, damaged):
        folder.mkdir()
        (folder / "results.sqlite").write_bytes((ROOT / "reports" / "quick" / "results.sqlite").read_bytes())
    with closing(sqlite3.connect(damaged / "results.sqlite")) as connection, connection:
        connection.execute("UPDATE run SET solve_seconds = solve_seconds / 2 WHERE id = 3")
    code, out, errors = check(damaged, whole, ROOT / "README.md")
    assert code == 1
    assert out[0] == f"{damaged}: 60 rows, 1 damaged"
    assert out[1].startswith("  damaged: row 3 (")
    assert out[2].startswith(f"{whole}: 60 rows, all as its checksum says")
    assert out[3] == f"{ROOT / 'README.md'}: a file, not a folder: skipped"
    assert len(errors) == 1
    code, out, errors = check(none, damaged, whole, "--drop")
    assert code == 2
    assert len(errors) == 1
    assert "no results in" in errors[0]
    assert "  1 row set aside" in out[2]
    assert check(damaged, whole)[0] == 0
