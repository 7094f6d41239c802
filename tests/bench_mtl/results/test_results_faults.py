"""Files that are none, full disks, media that cannot be written, and processes that are killed."""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hand_made import case, content, fill, finished_in, in_python, outcome, require_whole, results_bytes, suite

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


def of_version(version: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', ?)", (version,))
        connection.commit()
        return connection.serialize()


def test_what_is_no_results_file_or_only_a_part_of_one_or_of_another_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    file = results_bytes(fill(tmp_path, range(100)))
    parts = [file[: int(share * len(file))] for share in (0.0, 0.01, 0.5, 0.999)]
    cases = dict.fromkeys([*parts, b"SQLite format 3\x00" + b"\x00" * 200, b"not a database"], "not a readable results file")
    cases |= {
        of_version(each): f"schema version {each}, but this bench_mtl reads version {SCHEMA_VERSION}: the release"
        for each in ("7", "99", "²", "")
    }
    for stored, words in cases.items():
        (tmp_path / FILE_NAME).write_bytes(stored)
        for action in (lambda: Store.open(tmp_path), lambda: Store.create(tmp_path, suite())):
            with pytest.raises(InputError, match=words):
                action()
        assert content(tmp_path) == {FILE_NAME: stored}
    (tmp_path / FILE_NAME).unlink()
    for ending in ("-wal", "-journal"):
        (tmp_path / f"{FILE_NAME}{ending}").write_bytes(b"x" * 5000)
        with pytest.raises(InputError, match=f"holds {FILE_NAME}{ending} of results that are gone"):
            Store.create(tmp_path, suite())
        (tmp_path / f"{FILE_NAME}{ending}").unlink()


KILLED = """
with Store.create(folder, suite()) as store:
    for number in range(5):
        store.add(case(number), outcome(), store.add_environment({}))
    os.kill(os.getpid(), 9)
"""

CUT_SHORT = """
connection = sqlite3.connect(folder / "results.sqlite")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE sample SET primal = 77")
connection.execute("UPDATE run SET reason = hex(randomblob(20000))")
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed: its rows are in the WAL."""
    folder = tmp_path_factory.mktemp("killed") / "results"
    assert in_python(KILLED, folder).returncode == -9
    assert (folder / f"{FILE_NAME}-wal").stat().st_size > 0
    return folder


ADD_UNTIL_REFUSED = """
import resource
from bench_mtl.core.errors import IncompleteError
with Store.create(folder, suite()) as store:
    environment = store.add_environment({})
    if limit := int(sys.argv[2]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for number in range(10_000):
        try:
            store.add(case(number), outcome(20), environment)
        except IncompleteError as error:
            print(number, error)
            break
"""


def require_stored(folder: Path, limit: int, message: str, roomy: Path) -> None:
    """Fill a disk, and go on in a folder that has room."""
    result = in_python(ADD_UNTIL_REFUSED, folder, str(limit))
    rows, _, error = result.stdout.partition(" ")
    assert int(rows) > 10, result.stderr
    assert f"{folder / FILE_NAME}: cannot be read or written: {message}" in error
    assert require_whole(folder, 20) == int(rows)
    shutil.copytree(folder, roomy)
    assert len(finished_in(roomy)) == int(rows)
    fill(roomy, {int(rows): outcome(20)}, plan=[case(number) for number in range(int(rows) + 1)])
    assert require_whole(roomy, 20) == int(rows) + 1


def test_a_file_that_may_not_grow_keeps_what_it_has(tmp_path: Path) -> None:
    require_stored(tmp_path / "small", 300_000, "disk I/O error", tmp_path / "roomy")


def test_a_full_disk_keeps_what_it_has_and_takes_no_half_of_a_new_file(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as folder:
        require_stored(folder, 0, "database or disk is full", tmp_path / "roomy")
        with pytest.raises(IncompleteError, match="cannot be"):
            Store.create(folder / "new", suite())
        assert not (folder / "new").exists()


@pytest.mark.parametrize("state", ["finished", "unfinished", "cut short"])
def test_media_that_cannot_be_written_are_read(tmp_path: Path, killed: Path, state: str) -> None:
    with mounted(tmp_path / "disc", "size=4m") as folder:
        if state in ("finished", "cut short"):
            fill(folder, range(5))
        else:
            shutil.copytree(killed, folder, dirs_exist_ok=True)
        if state == "cut short":
            assert in_python(CUT_SHORT, folder).returncode == -9
            assert (folder / f"{FILE_NAME}-journal").stat().st_size > 0
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        before = content(folder)
        assert require_whole(folder, 3) == 5
        for refused in (lambda: Store.create(folder, suite()), lambda: export(folder, "csv")):
            with pytest.raises(InputError, match="cannot be written"):
                refused()
        assert export(folder, "csv", tmp_path / "out")
        assert content(folder) == before


KILLED_OFTEN = """
import random, signal, time
rng = random.Random(5)

def write():
    for _ in range(1000):
        with Store.create(folder, suite()) as store:
            number = len(store.finished())
            environment = store.add_environment({})
            for _ in range(30):
                store.add(case(number), outcome(20), environment)
                number += 1

rows = kill = 0
while kill < 20 or (rows < 20 and kill < 200):  # a slow disk takes more of them
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
        before, rows = rows, require_whole(folder, 20)
        assert rows >= before
    kill += 1
print(rows)
"""


def test_a_writer_that_is_killed_leaves_complete_runs(tmp_path: Path) -> None:
    result = in_python(KILLED_OFTEN, tmp_path / "results")
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(result.stdout) >= 20, "a row a kill"
    fill(tmp_path / "results", [])
    assert [path.name for path in (tmp_path / "results").iterdir()] == [FILE_NAME]


def test_a_new_file_that_was_not_finished_is_begun_again(tmp_path: Path) -> None:
    killed = in_python("os.replace = lambda *_: os.kill(os.getpid(), 9)\nStore.create(folder, suite())", tmp_path)
    assert killed.returncode == -9
    assert (tmp_path / f"{FILE_NAME}.part").exists()
    fill(tmp_path, [0])
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


HOLD = """
import subprocess, time
store = Store.create(folder, suite())
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
sleeper = subprocess.Popen(sleep, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
forked = os.fork()
if forked == 0:
    os.close(1)
    os.close(2)
    time.sleep(60)
print(sleeper.pid, forked, flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_lock_goes_with_its_holder_and_its_children_do_not_have_it(tmp_path: Path) -> None:
    result = in_python(HOLD, tmp_path)
    children = [int(pid) for pid in result.stdout.split()]
    try:
        assert (result.returncode, len(children)) == (-9, 2), result.stderr
        assert (tmp_path / LOCK_NAME).exists()
        for pid in children:
            os.kill(pid, 0)  # they live
        fill(tmp_path, [0])
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
