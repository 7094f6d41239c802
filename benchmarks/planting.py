"""Changes of one file at a time in a copy of the tree, and the tests that notice them: what `planted_faults` and `mutants` share."""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil

#: The packages whose code is tested.
PACKAGES = ("bench_mtl", "problems", "solvers")

#: Seconds after which a test counts as failed (kernels may have to be compiled in them), and the most memory of all processes of a run.
_TEST_SECONDS, _MOST_MEMORY = 120, 8 * 2**30

#: Tests of the tree as a whole, of documents and of these tools, which notice no fault of the code.
_OF_OTHER_THINGS = ("tests/benchmarks/", "tests/docs/", "tests/plugins/", "tests/laws/", "tests/test_")

#: Tests that only lie in the same folder are taken after those that import the code over fewer imports than this.
_FAR = 4

#: This file deletes all compiled code where one kernel has changed. While one has, that of the others stays.
_CACHE = "bench_mtl/core/kernels/cache.py"


class UnusableError(Exception):
    """A check cannot be made: its table does not fit the tree, or pytest does not run."""


class Selection(NamedTuple):
    """Tests that are run together, up to the first that fails."""

    tests: tuple[str, ...]  # files, folders or nodes; none for the whole suite
    only: str = ""  # a choice among them, as of ``pytest -k``
    seconds: float = 600.0  # they are stopped after these


class Change(NamedTuple):
    """Other content of a file, and the tests that may notice it, the likeliest first."""

    name: str
    file: str
    content: str
    selections: tuple[Selection, ...]


class Imports:
    """Who imports whom, read from the files of a tree."""

    def __init__(self, root: Path) -> None:
        folders = [root / name for name in (*PACKAGES, "tests")]
        files = sorted(
            file for folder in folders for file in folder.rglob("*.py") if file.resolve() == root.resolve() / file.relative_to(root)
        )
        self.sources = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}  # not by way of a link
        modules = {_module(file): file for file in self.sources}
        self._used = {file: {modules[name] for name in _imported(source, modules)} for file, source in self.sources.items()}

    def code(self) -> dict[str, str]:
        """Return the code that is tested, by file."""
        return {file: source for file, source in self.sources.items() if not file.startswith("tests/")}

    def importers(self, file: str) -> dict[str, int]:
        """Return the files that import this one, themselves or through others, and over how many imports."""
        distances, front = {file: 0}, {file}
        while front:
            front = {other for other, used in self._used.items() if used & front and other not in distances}
            distances |= dict.fromkeys(front, max(distances.values()) + 1)
        return distances

    def tests_of(self, file: str) -> list[str]:
        """Return the test files that may notice a change: those that are named like the file, then the nearest that import it."""
        distances, parts = self.importers(file), PurePosixPath(file).with_suffix("").parts
        folder = f"tests/{'/'.join(parts[: 2 if parts[0] == 'bench_mtl' else 1])}/"
        words = tuple(
            part.partition("_")[0] for part in parts[2 if parts[0] == "bench_mtl" else 1 :] if part not in ("kernels", "__init__")
        )

        def rank(test: str) -> tuple[int, str]:
            near = distances.get(test, _FAR)
            is_named = test.startswith(folder) and PurePosixPath(test).stem.removeprefix("test_").startswith(words)
            return (0 if is_named else near), test

        tests = (test for test in self.sources if "/test_" in test and test.startswith("tests/") and not test.startswith(_OF_OTHER_THINGS))
        return sorted((test for test in tests if test.startswith(folder) or distances.get(test, _FAR) < _FAR), key=rank)


def _module(file: str) -> str:
    """Return the name by which a file is imported; helpers of tests are imported by their own names."""
    parts = PurePosixPath(file).with_suffix("").parts
    if parts[0] == "tests":
        return parts[-1]
    return ".".join([*([] if parts[0] == "bench_mtl" else ["bench_mtl"]), *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _imported(source: str, modules: dict[str, str]) -> set[str]:
    names = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {below if (below := f"{node.module}.{alias.name}") in modules else node.module for alias in node.names}
    return names & modules.keys()


def current(root: Path, test: str) -> str:
    """Return a test whose file may have moved and is found by its name; empty where it is gone."""
    path, separator, node = test.partition("::")
    files = [root / path] if (root / path).exists() else list((root / "tests").rglob(Path(path).name))
    return f"{files[0].relative_to(root).as_posix()}{separator}{node}" if len(files) == 1 else ""


class Copy:
    """A copy of a tree, compiled code and all, for one change after the other."""

    def __init__(self, root: Path, place: Path, imports: Imports) -> None:
        self.tree, self._place, self._imports = place / "tree", place, imports
        self._process: subprocess.Popen[bytes] | None = None
        self._deselected: list[str] = []
        self._times = itertools.count(1)
        _copy_tree(root, self.tree)
        if (data := root.parent / "shared").exists():  # where tests look for real data
            (place / "shared").symlink_to(data.resolve())
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.tree), os.environ.get("PYTHONPATH", "")])),
            "PYTHONDONTWRITEBYTECODE": "",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
        }
        command = [sys.executable, "-P", "-c", "import bench_mtl; print(bench_mtl.__file__)"]
        imported = subprocess.run(command, cwd=place, env=self._environment, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(imported).is_relative_to(self.tree):
            raise UnusableError(f"the copy is not what is imported, but {imported}")

    def killer(self, change: Change) -> str:
        """Return the first test that fails with a change, or does not end, and passes without it; empty where there is none."""
        for selection in change.selections:
            while True:
                with self._changed(change):
                    failed = self._first_failure(selection)
                if not failed:
                    break
                if self._passes(failed):
                    return failed
                if failed in self._deselected:
                    raise UnusableError(f"{failed} fails without any change as well")
                self._deselected.append(failed)
        return ""

    def _passes(self, test: str) -> bool:
        try:
            return not self._first_failure(Selection((test,)))
        except UnusableError:  # there is such a test with the change alone
            return True

    def stop(self) -> None:
        """End the tests that are running, and all that they have started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    @contextmanager
    def _changed(self, change: Change) -> Iterator[None]:
        """Write a file otherwise; of kernels that hold its machine code, and of no others, compile the code again."""
        importers = self._imports.importers(change.file)
        stale = {file: file.read_bytes() for file in self._compiled(importers)}
        contents = {change.file: change.content.encode()}
        if "kernels" in change.file and change.file != _CACHE:
            contents[_CACHE] = (self.tree / _CACHE).read_bytes() + b"\n\ndef forget_outdated() -> None:\n    pass\n"
        before = {self.tree / name: ((self.tree / name).read_bytes(), (self.tree / name).stat()) for name in contents}
        try:
            for name, content in contents.items():
                (self.tree / name).write_bytes(content)
                os.utime(self.tree / name, (0, next(self._times)))  # no time twice: bytecode is known by it
            for file in stale:
                file.unlink()
            yield
        finally:
            for file, (content, state) in before.items():
                file.write_bytes(content)
                os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
            for file in self._compiled(importers):
                file.unlink()
            for file, content in stale.items():
                file.write_bytes(content)
            shutil.rmtree(self._place / "hypothesis", ignore_errors=True)

    def _compiled(self, names: dict[str, int]) -> list[Path]:
        """Return the files of machine code of these source files."""
        sources = [self.tree / name for name in names if not name.startswith("tests/")]
        return [file for source in sources for file in (source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ic]")]

    def _first_failure(self, selection: Selection) -> str:
        options = ["-vv", "-x", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rfE", "--hypothesis-seed=0"]
        options += ["-o", f"faulthandler_timeout={_TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
        options += [part for node in self._deselected for part in ("--deselect", node)]
        options += ["-k", selection.only] if selection.only else []
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            code = self._wait([sys.executable, "-m", "pytest", *options, *selection.tests], output.fileno(), selection.seconds)
            output.seek(0)
            text = output.read()
        if code in (None, 0, 5):  # stopped; all have passed; none was chosen
            return ""
        failed = re.findall(r"^(?:FAILED|ERROR) (.+)$", text, flags=re.MULTILINE)
        under_way = re.findall(r"^(tests/.+?::.+?)(?: +(?:[A-Z]{5,}\b|Timeout|Fatal).*)? *$", text, flags=re.MULTILINE)
        if code == 4 and "conftest" in text:  # it imports what is changed
            return "tests/conftest.py"
        if code == 4 or not (failed or under_way):
            raise UnusableError(f"pytest ended with exit code {code} and names no test that fails:\n{text[-2000:]}")
        return str(failed[0].split(" - ")[0] if failed else under_way[-1])  # or the test that took the process with it

    def _wait(self, command: Sequence[str], output: int, seconds: float) -> int | None:
        """Return the exit code, None where it took too long."""
        end = time.monotonic() + seconds
        silent = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        self._process = subprocess.Popen(command, cwd=self.tree, env=self._environment, start_new_session=True, **silent)  # type: ignore[call-overload]
        try:
            while time.monotonic() < end:
                with suppress(subprocess.TimeoutExpired):
                    return self._process.wait(1.0)
                if _memory(self._process.pid) > _MOST_MEMORY:
                    return -int(signal.SIGKILL)
            return None
        finally:
            self.stop()
            self._process.wait()


def _memory(process: int) -> int:
    total = 0
    with suppress(psutil.Error):
        first = psutil.Process(process)
        for each in (first, *first.children(recursive=True)):
            total += each.memory_info().rss
    return total


def _copy_tree(root: Path, target: Path) -> None:
    """Copy what git knows, or could know, and the compiled code beside it, times of change included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    sources = {root / name for name in listed.split("\0") if name}
    for source in sorted(sources):
        if source.is_symlink() or source.is_file():  # not one that is deleted and not yet committed
            (copy := target / source.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    for cache in {source.parent / "__pycache__" for source in sources if source.suffix == ".py"}:
        if cache.is_dir():
            shutil.copytree(cache, target / cache.relative_to(root), dirs_exist_ok=True)


def killers(root: Path, imports: Imports, changes: Sequence[Change], jobs: int, tell: Callable[[str, str], None]) -> dict[str, str]:
    """Try changes, each in one of `jobs` copies, and return the test that notices each, if any; `tell` learns of them in their order."""
    found: dict[str, str] = {}
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    with ExitStack() as stack:
        places = [stack.enter_context(tempfile.TemporaryDirectory(prefix="planted-")) for _ in range(max(1, min(jobs, len(changes))))]
        copies = [Copy(root, Path(place).resolve(), imports) for place in places]
        for copy in copies:
            free.put(copy)

        def attempt(change: Change) -> str:
            copy = free.get()
            try:
                return copy.killer(change)
            finally:
                free.put(copy)

        pool = stack.enter_context(ThreadPoolExecutor(len(copies)))
        try:
            for change, killer in zip(changes, pool.map(attempt, changes), strict=True):
                found[change.name] = killer
                tell(change.name, killer)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.stop()
            raise
    return found


def options_of(name: str, description: str | None, areas: Sequence[str]) -> argparse.ArgumentParser:
    """Return the options of both commands."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=(description or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these alone")
    parser.add_argument("--area", nargs="+", choices=areas, help="those of these areas alone")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many are tried at once, each in a copy of its own")
    parser.add_argument("--list", action="store_true", help="show what would be planted where, and run nothing")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="where to write a table")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="the tree; that of this file by default")
    return parser
