"""Damaged files, full disks, media that cannot be written, and processes that are killed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hand_made import case, content, fill, finished_in, in_python, numbers, outcome, require_whole, results_bytes, suite

from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.results import FILE_NAME, SCHEMA_VERSION, Store
from bench_mtl.results.export import export
from bench_mtl.results.files import LOCK_NAME


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small file system of its own at `folder`; the test is skipped where none can be mounted."""
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here (needs root)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_what_is_no_results_file_or_only_a_part_of_one_is_refused_and_not_touched(tmp_path: Path, share: float) -> None:
    file = results_bytes(fill(tmp_path, range(100)))
    for damaged in (file[: int(share * len(file))], b"SQLite format 3\x00" + b"\x00" * 200 if share else b"not a database"):
        (tmp_path / FILE_NAME).write_bytes(damaged)
        for action in (lambda: Store.open(tmp_path), lambda: Store.create(tmp_path, suite())):
            with pytest.raises(InputError, match="not a readable results file"):
                action()
        assert content(tmp_path) == {FILE_NAME: damaged}


@pytest.mark.parametrize("version", ["7", "99", "²", ""])
def test_a_file_of_another_schema_is_refused(tmp_path: Path, version: str) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', ?)", (version,))
    before = content(tmp_path)
    for action in (lambda: Store.open(tmp_path), lambda: Store.create(tmp_path, suite())):
        with pytest.raises(InputError, match=f"schema version {version}, but this bench_mtl reads version {SCHEMA_VERSION}$"):
            action()
    assert content(tmp_path) == before


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_changes_of_a_file_that_is_gone_are_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"{FILE_NAME}{ending}").write_bytes(b"x" * 5000)
    with pytest.raises(InputError, match=f"holds {FILE_NAME}{ending} of results that are gone"):
        Store.create(tmp_path, suite())


KILLED = """
import os, sys
from pathlib import Path
from hand_made import case, outcome, suite
from bench_mtl.results import Store
with Store.create(Path(sys.argv[1]), suite()) as store:
    for number in range(5):
        store.add(case(number), outcome(), store.add_environment({}))
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed: its rows are in the WAL."""
    folder = tmp_path_factory.mktemp("killed") / "results"
    assert in_python(KILLED, folder).returncode == -9
    assert (folder / f"{FILE_NAME}-wal").stat().st_size > 0
    return folder


def test_the_wal_of_a_killed_run_is_read_and_gone_on_from(tmp_path: Path, killed: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(killed, folder)
    before = results_bytes(folder)
    assert require_whole(folder, 3) == 5
    assert results_bytes(folder) == before
    fill(folder, [5], plan=[case(number) for number in range(6)])
    assert numbers(folder) == [0, 1, 2, 3, 4, 5]
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


CUT_SHORT = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE sample SET primal = 77")
connection.execute("UPDATE run SET reason = hex(randomblob(2000))")
os.kill(os.getpid(), 9)
"""


def test_a_change_that_was_cut_short_is_undone_for_readers_too(tmp_path: Path) -> None:
    fill(tmp_path, range(50))
    assert in_python(CUT_SHORT, tmp_path / FILE_NAME).returncode == -9
    before = content(tmp_path)
    assert len(before[f"{FILE_NAME}-journal"]) > 0
    with Store.open(tmp_path) as store:
        assert set(store.runs()["reason"]) == {"as it is"}
        assert set(store.samples()["primal"]) == {1.0}
    assert content(tmp_path) == before


ADD_UNTIL_REFUSED = """
import resource, sys
from pathlib import Path
from hand_made import case, outcome, suite
from bench_mtl.core.errors import IncompleteError
from bench_mtl.results import Store
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
with Store.create(folder, suite()) as store:
    environment = store.add_environment({})
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for number in range(10_000):
        try:
            store.add(case(number), outcome(20), environment)
        except IncompleteError as error:
            print(number, error)
            break
"""


def require_kept(folder: Path, result: subprocess.CompletedProcess[str], message: str) -> None:
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    kept, _, error = line.partition(" ")
    assert int(kept) > 10
    assert f"{folder / FILE_NAME}: cannot be read or written: {message}" in error
    assert require_whole(folder, 20) == int(kept)


def require_gone_on_with(folder: Path) -> None:
    rows = len(finished_in(folder))
    fill(folder, {rows: outcome(20)}, plan=[case(number) for number in range(rows + 1)])
    assert require_whole(folder, 20) == rows + 1


@pytest.mark.parametrize("limit", [300_000, 1_000_000])
def test_a_file_that_may_not_grow_keeps_what_it_has(tmp_path: Path, limit: int) -> None:
    require_kept(tmp_path, in_python(ADD_UNTIL_REFUSED, tmp_path, limit), "disk I/O error")
    require_gone_on_with(tmp_path)


def test_a_full_disk_keeps_what_it_has(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as folder:
        require_kept(folder, in_python(ADD_UNTIL_REFUSED, folder, 0), "database or disk is full")
        shutil.copytree(folder, tmp_path / "roomy")
    require_gone_on_with(tmp_path / "roomy")


def test_a_full_disk_takes_no_half_of_a_new_file(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as folder:
        (folder / "other").write_bytes(b"x" * 60_000)
        with pytest.raises(IncompleteError, match="cannot be"):
            Store.create(folder / "new", suite())
        assert [path.name for path in folder.iterdir()] == ["other"]


def finished(folder: Path, killed: Path) -> None:
    fill(folder, {number: outcome() for number in range(5)})


def unfinished(folder: Path, killed: Path) -> None:
    shutil.copytree(killed, folder, dirs_exist_ok=True)


def without_index(folder: Path, killed: Path) -> None:
    unfinished(folder, killed)
    (folder / f"{FILE_NAME}-shm").unlink()


def without_wal(folder: Path, killed: Path) -> None:
    """As copied from a run that had written its WAL back and not closed."""
    unfinished(folder, killed)
    (folder / LOCK_NAME).unlink()
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("SELECT * FROM meta").fetchall()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    assert results_bytes(folder)[18:20] == b"\2\2"


def cut_short(folder: Path, killed: Path) -> None:
    finished(folder, killed)
    assert in_python(CUT_SHORT.replace("2000", "20000"), folder / FILE_NAME).returncode == -9
    assert (folder / f"{FILE_NAME}-journal").stat().st_size > 0


@pytest.mark.parametrize("prepare", [finished, unfinished, without_index, without_wal, cut_short])
def test_media_that_cannot_be_written_are_read(tmp_path: Path, killed: Path, prepare: Callable[[Path, Path], None]) -> None:
    with mounted(tmp_path / "disc", "size=4m") as folder:
        prepare(folder, killed)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        before = content(folder)
        assert require_whole(folder, 3) == 5
        assert content(folder) == before
        with pytest.raises(InputError, match=r"cannot be written: Read-only file system"):
            Store.create(folder, suite())
        with pytest.raises(InputError, match="cannot be written"):
            export(folder, "csv")
        assert export(folder, "csv", tmp_path / "out")
        assert content(folder) == before


KILLED_OFTEN = """
import os, random, signal, sys, time
from pathlib import Path
from hand_made import case, outcome, suite
from bench_mtl.results import Store
from hand_made import require_whole
folder, rng = Path(sys.argv[1]), random.Random(int(sys.argv[2]))

def write():
    for _ in range(1000):
        with Store.create(folder, suite()) as store:
            number = len(store.finished())
            environment = store.add_environment({})
            for _ in range(30):
                store.add(case(number), outcome(20), environment)
                number += 1

kept = 0
for kill in range(20):
    child = os.fork()
    if child == 0:
        try:
            write()
        except BaseException as error:
            print(error, flush=True)
        os._exit(1)
    time.sleep(rng.uniform(0.0, 0.01) if kill < 5 else rng.uniform(0.0, 0.15))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself"
    if (folder / "results.sqlite").exists():
        now = require_whole(folder, 20)
        assert now >= kept
        kept = now
print(kept)
"""


def test_a_writer_that_is_killed_leaves_whole_runs(tmp_path: Path) -> None:
    result = in_python(KILLED_OFTEN, tmp_path / "results", "5")
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout) > 100
    fill(tmp_path / "results", [])


KILLED_WHILE_NEW = """
import os, sys
from pathlib import Path
from hand_made import suite
from bench_mtl.results import Store
os.replace = lambda *_: os.kill(os.getpid(), 9)
Store.create(Path(sys.argv[1]), suite())
"""


def test_a_new_file_that_was_not_finished_is_begun_again(tmp_path: Path) -> None:
    assert in_python(KILLED_WHILE_NEW, tmp_path).returncode == -9
    assert (tmp_path / f"{FILE_NAME}.part").exists()
    fill(tmp_path, [0])
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
