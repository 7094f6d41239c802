"""`bench-mtl check`: every folder is looked at, and the exit code is that of the worst."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def test_every_folder_is_looked_at(command: Callable[..., Any], tmp_path: Path) -> None:
    whole, damaged, none = (tmp_path / name for name in ("whole", "damaged", "none"))
    for folder in (whole, damaged):
        folder.mkdir()
        (folder / "results.sqlite").write_bytes((ROOT / "reports" / "quick" / "results.sqlite").read_bytes())
    with closing(sqlite3.connect(damaged / "results.sqlite")) as connection, connection:
        connection.execute("UPDATE run SET solve_seconds = solve_seconds / 2 WHERE id = 3")
    code, out, errors = command("check", damaged, whole, ROOT / "README.md")
    assert code == 1
    assert out[0] == f"{damaged}: 60 rows, 1 damaged"
    assert out[1].startswith("  damaged: row 3 (")
    assert out[2] == f"{whole}: 60 rows, all as its checksum says"
    assert out[3] == f"{ROOT / 'README.md'}: a file, not a folder: skipped"
    assert len(errors) == 1
    code, out, errors = command("check", none, damaged, whole, "--drop")
    assert code == 2
    assert len(errors) == 1
    assert "no results in" in errors[0]
    assert "  1 row set aside" in out[2]
    assert command("check", damaged, whole).code == 0
