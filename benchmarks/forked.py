"""Runs pytest in processes that are forked from this one, which has imported all that tests need but the code that they test.

A start of pytest with these imports takes seconds, a fork none. Where the system allows it every run has its own processes: it sees no
others, which a fault in code that ends processes could end, and what it has started ends with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
import types
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest

from benchmarks.copies import Copy
from benchmarks.may_kill import Choice

#: What tests and the code import, but their own modules.
_LIBRARIES = (
    "arff", "click.testing", "cvxpy", "dask.distributed", "hypothesis.extra.numpy", "hypothesis.strategies", "jinja2", "markdown_it",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.figure", "numba", "numpy.testing", "pandas",
    "psutil", "pyarrow.parquet", "rich.progress", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "scipy.special", "scipy.stats",
    "seaborn", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.preprocessing", "sklearn.svm", "tabulate",
    "threadpoolctl",
)  # fmt: skip

#: Examples of a property: seldom does a fault pass these and fail on others.
_EXAMPLES = 25

#: No run may take more memory.
_MOST_MEMORY = 8 * 2**30

#: How often a run is looked at that goes on.
_LOOK_SECONDS = 1.0

_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000


def import_libraries(used: Container[str]) -> None:
    """Import what all runs share, as far as it is used."""
    for name in (name for name in _LIBRARIES if name.partition(".")[0] in used):
        with suppress(ImportError):
            import_module(name)


@dataclass
class Verdict:
    """What a run has shown."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Of the tests that have ended."""
    failed: list[str] = field(default_factory=list)
    """Tests that failed, and files that could not be collected."""
    too_slow: str = ""
    """The test in which the run was stopped."""
    waited: float = 0.0
    """Seconds of that test until then."""


class Run:
    """Tests that are running in a process of their own."""

    def __init__(
        self, copy: Copy, choices: Sequence[Choice], most_failures: int, slow: Iterable[str], patience: tuple[float, float]
    ) -> None:
        """Wait `patience` seconds for one test, and for all of them."""
        self._report, self._output = copy.place / "report.jsonl", copy.place / "output.txt"
        self._report.write_text("")
        self._patience, self._looked = patience, time.monotonic()
        self._together, self._under_way, self._waited = 0.0, "", 0.0
        sys.stdout.flush()
        self._process = os.fork()
        if self._process == 0:
            try:  # nothing of this process goes on in the other
                _become(copy, self._output)
                pytest.main(_arguments(choices, most_failures), plugins=[_Reporter(self._report, choices, slow)])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)

    def verdict(self) -> Verdict | None:
        """Return what the run has shown; None while it goes on."""
        ended, _ = os.waitpid(self._process, os.WNOHANG)
        now = time.monotonic()
        if not ended and now < self._looked + _LOOK_SECONDS:
            return None
        since_then, self._looked = min(now - self._looked, 2.0 * _LOOK_SECONDS), now  # a machine that stood still is no slow test
        verdict, under_way = self._read()
        self._together += since_then
        self._waited = self._waited + since_then if under_way == self._under_way else 0.0
        self._under_way = under_way
        if ended:
            if under_way:  # which took the whole process with it
                verdict.failed.append(under_way)
            return verdict
        one, together = self._patience
        if (under_way and self._waited > one) or self._together > together or self._memory() > _MOST_MEMORY:
            self.stop()
            verdict.too_slow, verdict.waited = under_way or "the collection", self._waited
            return verdict
        return None

    def stop(self) -> None:
        """End the run and all that it has started."""
        with suppress(psutil.Error, ProcessLookupError, ChildProcessError):
            for process in [*psutil.Process(self._process).children(recursive=True), psutil.Process(self._process)]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            os.waitpid(self._process, 0)

    def _memory(self) -> int:
        with suppress(psutil.Error):
            return sum(process.memory_info().rss for process in psutil.Process(self._process).children(recursive=True))
        return 0

    def _read(self) -> tuple[Verdict, str]:
        verdict, under_way, since = Verdict(), "", 0.0
        for line in self._report.read_text().splitlines():
            with suppress(ValueError):  # the last line may be half there
                what, name, now = json.loads(line)
                if what == "start":
                    under_way, since = name, now
                elif what == "end":
                    verdict.seconds[name] = now - since
                    under_way = ""
                elif name not in verdict.failed:
                    verdict.failed.append(name)
        return verdict, under_way


class _Reporter:
    """A plug-in of pytest that writes down what comes of every test, and leaves out those that are not chosen."""

    def __init__(self, report: Path, choices: Sequence[Choice], slow: Iterable[str]) -> None:
        self._stream = report.open("a", buffering=1)
        self._process = os.getpid()
        self._choices: Mapping[str, Choice] = {choice.file: choice for choice in choices}
        self._slow = frozenset(slow)

    def _write(self, what: str, name: str) -> None:
        if os.getpid() == self._process:  # not a fork of it
            self._stream.write(json.dumps((what, name, time.monotonic())) + "\n")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._is_chosen(item.nodeid)]
        for item in items:
            function = getattr(item, "obj", None)
            function = getattr(function, "__func__", function)
            settings = getattr(function, "_hypothesis_internal_use_settings", None)
            if settings is not None:
                phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # failures need not be made smaller
                examples = min(_EXAMPLES, settings.max_examples)
                function.__dict__["_hypothesis_internal_use_settings"] = hypothesis.settings(  # a method shares that of its function
                    settings, max_examples=examples, phases=phases, database=None
                )

    def _is_chosen(self, name: str) -> bool:
        choice = self._choices.get(name.partition("::")[0], Choice(""))
        if choice.nodes:
            return name in choice.nodes
        return name not in self._slow and (not choice.words or any(word in name for word in choice.words))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("start", nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write("end", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write("fail", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("fail", report.nodeid)


def _arguments(choices: Sequence[Choice], most_failures: int) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "--tb=no", "--continue-on-collection-errors", "--hypothesis-seed=0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of libraries that are imported before pytest starts
    return [*options, "-m", "not slow", "-n", "0", f"--maxfail={most_failures}", *(choice.file for choice in choices)]


def _become(copy: Copy, output: Path) -> None:
    """Turn this process into one that was started in the copy."""
    os.setsid()
    _enter_own_processes()
    stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, target in ((os.open(os.devnull, os.O_RDONLY), 0), (stream, 1), (stream, 2)):
        os.dup2(number, target)
    os.environ.clear()
    os.environ.update(copy.environment)
    os.chdir(copy.tree)
    own = Path(__file__).resolve().parents[1]
    sys.path[:] = [str(copy.tree), *(entry for entry in sys.path if entry and Path(entry).resolve() != own)]
    sys.dont_write_bytecode = False
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]
    main: Any = types.ModuleType("__main__")  # which no process of multiprocessing imports again
    sys.modules["__main__"] = main
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _enter_own_processes() -> None:
    """Go on in a fork that sees only itself and what it starts, where the system allows it; this process ends with it."""
    system = ctypes.CDLL(None, use_errno=True)
    if not sys.platform.startswith("linux") or system.unshare(_CLONE_NEWPID | _CLONE_NEWNS):
        return
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        os._exit(0)
    system.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    system.mount(b"proc", b"/proc", b"proc", 0, None)
    tests = os.fork()
    if tests:  # the first process of all takes in those whose parents have ended, and all end with it
        while os.wait()[0] != tests:
            pass
        os._exit(0)
