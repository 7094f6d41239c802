"""Damaged results that cannot be set aside stay as they are, with the rows that are still in the WAL."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench_mtl.core.errors import BenchError
from bench_mtl.results import FILE_NAME
from bench_mtl.results import check as checking
from tests.bench_mtl.results.hand_made import fill


def killed_and_damaged(tmp_path: Path) -> Path:
    """A folder as a run leaves it that was killed: its last change is in the WAL, and is damage."""
    folder, copy = fill(tmp_path / "results", range(3)), tmp_path / "copy"
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE run SET status = 'wrong' WHERE id = 2")
        connection.commit()
        shutil.copytree(folder, copy)
    assert (copy / f"{FILE_NAME}-wal").stat().st_size
    return copy


def test_a_full_disk_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = killed_and_damaged(tmp_path)
    (damage,) = checking.check(folder).damaged

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("_copy", "_set_aside"):
        with monkeypatch.context() as patched:
            patched.setattr(checking, name, full)
            with pytest.raises(BenchError, match="No space left"):
                checking.drop(folder)
        assert not list(folder.glob("*damaged*"))
        assert checking.check(folder).damaged == (damage,)
        assert checking.check(folder).rows == 3


@pytest.mark.parametrize("has_links", [True, False])
def test_the_wal_goes_with_the_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    folder = killed_and_damaged(tmp_path)

    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr("os.link", no_links)
    aside, rows = checking.drop(folder) or (folder, 0)
    assert (aside.name, rows, checking.check(folder).damaged, checking.check(folder).rows) == ("results-damaged-1.sqlite", 1, (), 2)
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT status FROM run ORDER BY id").fetchall() == [("verified",), ("wrong",), ("verified",)]
