"""Plant faults, one at a time, into a copy of the tree and count how many of them the test-suite catches.

Run it as ``python -m benchmarks.planted_faults``. Each fault of ``faults.toml`` replaces one snippet of one file by another that still
compiles and makes some result wrong. The tests that should notice it are run on the copy, and where they pass the whole suite. What is
caught says how far green tests can be trusted; a fault that survives asks for a test.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.copies import PACKAGES, Copy, UnusableError
from benchmarks.may_kill import Imports

#: The share of faults that is to be caught.
BAR = 0.9

#: What is said of tests that are stopped.
TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Fault:
    """A mistake that somebody could make."""

    name: str
    area: str
    what: str
    """What is wrong then."""
    file: str
    """Relative to the root. Where the snippet is not in it, it is looked for in `PACKAGES`."""
    old: str
    """Occurs once in the file."""
    new: str
    tests: tuple[str, ...]
    """Files, folders or nodes that should catch it, relative to the root. What has moved is found by its name."""
    only: str = ""
    """A choice among these tests, as of ``pytest -k``."""


def stored_faults() -> tuple[Fault, ...]:
    """Return the faults of ``faults.toml``."""
    rows = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))["fault"]
    return tuple(Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows)


FAULTS = stored_faults()
AREAS = tuple(dict.fromkeys(fault.area for fault in FAULTS))


@dataclass(frozen=True)
class Planted:
    """A fault and where it goes in a tree."""

    fault: Fault
    file: str
    tests: tuple[str, ...]

    @property
    def selection(self) -> list[str]:
        """What pytest is told."""
        return [*(["-k", self.fault.only] if self.fault.only else []), *self.tests]


@dataclass(frozen=True)
class Outcome:
    """What came of a fault."""

    planted: Planted
    is_caught: bool
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What pytest says."""

    passed: bool
    first: str
    """The first test that failed."""


def placed(fault: Fault, root: Path) -> Planted:
    """Return the fault with its file and tests as they are in the tree at `root`.

    Raises
    ------
    UnusableError : its snippet is nowhere, or in several places, or does not compile; a test is gone.
    """
    file = _file_of(fault, root)
    source = (root / file).read_text(encoding="utf-8")
    if source.count(fault.old) != 1:
        raise UnusableError(f"{fault.name}: the snippet occurs {source.count(fault.old)} times in {file}")
    try:
        compile(source.replace(fault.old, fault.new), file, "exec")
    except SyntaxError as error:
        raise UnusableError(f"{fault.name}: {file} does not compile with it: {error}") from None
    return Planted(fault, file, tuple(_test_of(fault, test, root) for test in fault.tests))


def _file_of(fault: Fault, root: Path) -> str:
    named = root / fault.file
    if named.is_file() and fault.old in named.read_text(encoding="utf-8"):
        return fault.file
    files = {file.resolve() for package in PACKAGES for file in (root / package).rglob("*.py")}
    found = sorted(file for file in files if fault.old in file.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise UnusableError(f"{fault.name}: the snippet is not in {fault.file}, and in {len(found)} other files")
    return found[0].relative_to(root.resolve()).as_posix()


def _test_of(fault: Fault, test: str, root: Path) -> str:
    path, separator, node = test.partition("::")
    if not (root / path).exists():
        found = sorted((root / "tests").rglob(Path(path).name))
        if len(found) != 1:
            raise UnusableError(f"{fault.name}: {path} is gone, and {len(found)} others are named so")
        path = found[0].relative_to(root).as_posix()
    return path + separator + node


class Tester:
    """Runs tests in a copy of a tree, with one fault after the other."""

    def __init__(self, copy: Copy, imports: Imports, deselected: Sequence[str]) -> None:
        self._copy, self._imports, self._deselected = copy, imports, list(deselected)
        self._compiled = copy.compiled_files()
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def planted(self, planted: Planted) -> Iterator[None]:
        """Put the fault into the copy, and take it out again, whatever happens."""
        content = (self._copy.tree / planted.file).read_bytes()
        void = self._imports.importers(planted.file).keys() & self._compiled
        changed = content.replace(planted.fault.old.encode(), planted.fault.new.encode())
        with self._copy.changed(planted.file, changed), self._copy.compiled_again(void, self._imports.module(planted.file)):
            yield

    def test(self, selection: Sequence[str], timeout: float) -> Verdict:
        """Run these tests up to the first that fails."""
        code, failed = self._pytest(["-x", *selection], timeout)
        return Verdict(False, TIMED_OUT) if code is None else Verdict(code == 0, failed[0] if failed else "")

    def failing(self, selection: Sequence[str]) -> list[str]:
        """Run these tests, and return the names of all that fail."""
        return self._pytest(selection, None)[1]

    def deselect(self, node: str) -> None:
        """Leave a test out from here on."""
        self._deselected.append(node)

    def stop(self) -> None:
        """End the tests that are running, and all that they have started."""
        process = self._process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def _pytest(self, arguments: Sequence[str], timeout: float | None) -> tuple[int | None, list[str]]:
        """The exit code, None where it took too long, and what failed."""
        leave_out = [part for node in self._deselected for part in ("--deselect", node)]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            code = self._wait([*command, "--hypothesis-seed=0", *leave_out, *arguments], output.fileno(), timeout)
            output.seek(0)
            text = output.read()
        failed = [line.split(" - ")[0] for line in re.findall(r"^(?:FAILED|ERROR) (.+)$", text, flags=re.MULTILINE)]
        if code is not None and code != 0 and not (failed and code in (1, 2)):
            raise UnusableError(f"pytest ended with exit code {code} and names no test that fails:\n{text[-2000:]}")
        return code, failed

    def _wait(self, command: Sequence[str], output: int, timeout: float | None) -> int | None:
        self._process = subprocess.Popen(
            command,
            cwd=self._copy.tree,
            env=self._copy.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.stop()
            self._process.wait()


def require_passing(tester: Tester, faults: Sequence[Planted]) -> None:
    """Raise UnusableError where tests that are to catch faults fail without any."""
    choices: dict[str, dict[str, None]] = {}
    for planted in faults:
        choices.setdefault(planted.fault.only, {}).update(dict.fromkeys(planted.tests))
    whole = choices.get("", {})
    failed: list[str] = []
    for only, tests in choices.items():
        wanted = [test for test in tests if not only or test not in whole]
        if wanted:
            failed += tester.failing([*(["-k", only] if only else []), *wanted])
    if failed:
        raise UnusableError("tests fail without any fault (see --deselect): " + ", ".join(dict.fromkeys(failed)))


def tried(tester: Tester, planted: Planted, options: argparse.Namespace) -> Outcome:
    """Plant a fault, run the tests, and take it out again."""
    with tester.planted(planted):
        verdict = tester.test(planted.selection, options.timeout)
    if not verdict.passed:
        return _caught(planted, verdict.first)
    if options.targeted_only:
        return Outcome(planted, False, "survived the targeted tests")
    while True:
        with tester.planted(planted):
            verdict = tester.test([], options.suite_timeout)
        if verdict.passed:
            return Outcome(planted, False, "survived the whole suite")
        if verdict.first == TIMED_OUT:  # a suite may only be slow
            return Outcome(planted, False, "survived the targeted tests, and the whole suite timed out")
        if tester.test([verdict.first], options.timeout).passed:
            return _caught(planted, verdict.first)
        tester.deselect(verdict.first)  # it fails without the fault as well


def _caught(planted: Planted, by: str) -> Outcome:
    return Outcome(planted, True, by if by == TIMED_OUT else f"caught by {by}")


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes in Markdown."""
    lines = ["| fault | area | what is wrong | caught by |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        fault, told = outcome.planted.fault, outcome.sentence.removeprefix("caught by ")
        cells = (fault.name, fault.area, fault.what, f"`{told}`" if outcome.is_caught else f"**{told}**")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", "| area | planted | caught |", "| --- | --- | --- |"]
    for area in AREAS:
        of_area = [outcome.is_caught for outcome in outcomes if outcome.planted.fault.area == area]
        if of_area:
            lines.append(f"| {area} | {len(of_area)} | {sum(of_area)} |")
    return "\n".join([*lines, "", f"Caught {_count(outcomes)} of {len(outcomes)}.", ""])


def _count(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.is_caught for outcome in outcomes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 0 where at least `BAR` of the faults are caught."""
    options = _options(arguments)
    root = options.root.resolve()
    chosen = [fault for fault in FAULTS if fault.name in (options.only or [fault.name]) and fault.area in (options.area or AREAS)]
    unknown = set(options.only or []) - {fault.name for fault in FAULTS}
    try:
        if unknown or not chosen:
            raise UnusableError(f"no fault is called {', '.join(sorted(unknown))}" if unknown else "no fault is of this name and area")
        faults = _all_placed(chosen, root)
        if options.list:
            for planted in faults:
                print(f"{planted.fault.name} ({planted.fault.area}): {planted.file}; {' '.join(planted.selection)}")
            return 0
        outcomes = _all_tried(root, faults, options)
    except UnusableError as error:
        print(f"planted_faults: {error}", file=sys.stderr)
        return 2
    if options.out is not None:
        options.out.write_text(table(outcomes), encoding="utf-8")
    print(f"caught {_count(outcomes)} of {len(outcomes)}")
    return 0 if _count(outcomes) >= BAR * len(outcomes) else 1


def _all_placed(faults: Sequence[Fault], root: Path) -> list[Planted]:
    found, problems = [], []
    for fault in faults:
        try:
            found.append(placed(fault, root))
        except UnusableError as error:
            problems.append(str(error))
    if problems:
        raise UnusableError("\n".join(["the table does not fit the tree:", *problems]))
    return found


def _all_tried(root: Path, faults: Sequence[Planted], options: argparse.Namespace) -> list[Outcome]:
    jobs = min(options.jobs, len(faults))
    outcomes = []
    with ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planted-faults-"))).resolve() for _ in range(jobs)]
        copies = [Copy(root, place) for place in places]
        copies[0].require_own_code(root)
        imports = Imports(root)
        testers = [Tester(copy, imports, options.deselect) for copy in copies]
        if options.control:
            require_passing(testers[0], faults)
        free: queue.SimpleQueue[Tester] = queue.SimpleQueue()
        for tester in testers:
            free.put(tester)

        def attempt(planted: Planted) -> Outcome:
            tester = free.get()
            try:
                return tried(tester, planted, options)
            finally:
                free.put(tester)

        pool = stack.enter_context(ThreadPoolExecutor(jobs)) if jobs > 1 else None
        try:
            for number, outcome in enumerate(map(attempt, faults) if pool is None else pool.map(attempt, faults), start=1):
                print(f"{number}/{len(faults)} {outcome.planted.fault.name}: {outcome.sentence}", flush=True)
                outcomes.append(outcome)
        except BaseException:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            for tester in testers:
                tester.stop()
            raise
    return outcomes


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_faults", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="plant these faults alone")
    parser.add_argument("--area", nargs="+", choices=AREAS, help="plant the faults of these areas alone")
    parser.add_argument("--targeted-only", action="store_true", help="do not run the whole suite where the targeted tests pass")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many faults are tried at once, each in a copy of its own")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for a run of targeted tests")
    parser.add_argument("--suite-timeout", type=float, default=3600.0, metavar="SECONDS", help="for a run of the whole suite")
    parser.add_argument("--no-control", dest="control", action="store_false", help="do not test the copy without a fault first")
    parser.add_argument("--deselect", action="append", default=[], metavar="NODE", help="a test to leave out, which fails without a fault")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="where to write a table")
    parser.add_argument("--list", action="store_true", help="show where the faults go, and run nothing")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="the tree; that of this file by default")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
