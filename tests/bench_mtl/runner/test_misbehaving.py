"""Whatever a solver does by mistake costs its own row, and nothing else: the runs after it are what they are alone."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from runs import Executing, await_that, is_running, lesser, run_suite, solver, some_plugins, started_here, suite_of

from bench_mtl.results import Store
from bench_mtl.runner import child, watch

SOLVER = '''
@dataclass(frozen=True)
class {name}(IterativeSolver):
    """Yields the zero point three times, misbehaves, and goes on if that lets it; `folder` is for the numbers of what it starts."""

    folder: str = ""
    name = "{name}"
    requires = frozenset()

    def steps(self, problem, start=None):
        zero = problem.zero()
        for step in range(3):
            yield Iterate(zero, None, step, float(step))
{body}
        for step in range(3, 6):
            yield Iterate(zero, None, step, float(step))

'''

IMPORTS = """
import ctypes, os, resource, signal, subprocess, sys, threading, time, warnings
from dataclasses import dataclass
import numpy as np
from bench_mtl.core.types import Certificate, Iterate
from bench_mtl.engine import clock
from bench_mtl.model.protocols import IterativeSolver

def note(folder, pid):
    with open(f"{folder}/.{pid}", "w"):
        os.rename(f"{folder}/.{pid}", f"{folder}/{pid}.pid")

def child(folder, *, session=False):
    if os.fork() == 0:
        if session:
            os.setsid()
        note(folder, os.getpid())
        time.sleep(600)
        os._exit(0)
    while not [name for name in os.listdir(folder) if name.endswith(".pid")]:
        time.sleep(0.001)

def loop():
    while True:
        pass

def fill(gib):
    np.zeros(int(gib * 2**30), np.uint8).fill(1)
    time.sleep(600)
"""

#: What each does after three points, how its run ends, and what the row says.
ENDS: Mapping[str, tuple[str, str, str]] = {
    # It crashes, or raises.
    "aborts": ("os.abort()", "crashed", "the solver's process died: signal 6 (SIGABRT)"),
    "segfaults": ("ctypes.string_at(0)", "crashed", "the solver's process died: signal 11 (SIGSEGV)"),
    "exits": ("os._exit(7)", "crashed", "the solver's process died: exit code 7"),
    "is_killed": ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "the solver's process died: signal 9 (SIGKILL)"),
    "leaves": ("sys.exit('bye')", "error", "SystemExit: bye"),
    "interrupts": ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
    "runs_out": ("raise MemoryError('none left')", "memory", "out of memory: none left"),
    "raises_without_words": (
        "class WordlessError(Exception):\n    def __str__(self):\n        raise ValueError\nraise WordlessError", "error", "WordlessError",
    ),
    "is_interrupted": ("signal.raise_signal(signal.SIGINT)", "inaccurate", "the solver ended by itself"),
    # It yields other things than points.
    "yields_none": ("yield None", "error", "must yield Iterate, not NoneType"),
    "yields_nan": ("yield Iterate(np.full(zero.shape, np.nan), None, 3)", "error", "NaN"),
    "yields_a_shape": ("yield Iterate(np.zeros(7), None, 3)", "error", "shape"),
    "counts_nan": ("yield Iterate(zero, None, np.nan, 1.0)", "error", ""),
    "counts_no_work": (
        "import bench_mtl.engine.driver as d\nS = d.Sample\nd.Sample = lambda s, k, w, *a, **o: S(s, k, float('nan'), *a, **o)",
        "crashed", "sent what cannot be read",
    ),
    # It writes to its inputs, to the pipe, to standard output.
    "writes_to_its_input": ("problem.weights[...] = 0.0", "error", "read-only"),
    "unlocks_its_input": (
        "array = problem.weights\nwhile array.base is not None:\n    array = array.base\narray.flags.writeable = True\narray[...] = 0.0",
        "error wrong inaccurate", "",
    ),
    "writes_to_the_pipe": (
        "for fd in range(3, 100):\n    link = f'/proc/self/fd/{fd}'\n    if os.path.exists(link) and 'socket' in os.readlink(link):\n"
        "        os.write(fd, b'\\xff' * 99)",
        "crashed", "sent what cannot be read",
    ),
    "prints": ("os.write(1, b'x' * 2**24)", "inaccurate", "the solver ended by itself"),
    "closes_everything": ("os.closerange(0, 4096)", "crashed", "the solver's process died: exit code 1"),
    # It leaves threads, timers, children or changed settings.
    "leaves_a_thread": ("threading.Thread(target=loop, daemon=True).start()", "inaccurate", ""),
    "leaves_a_timer": ("signal.setitimer(signal.ITIMER_REAL, 1e-3)", "inaccurate crashed", ""),
    "leaves_a_child": ("child(self.folder)", "inaccurate", ""),
    "leaves_a_session": ("child(self.folder, session=True)", "inaccurate", ""),
    "leaves_a_program": (
        "words = [sys.executable, '-S', '-c', 'import time; time.sleep(600)']\n"
        "started = subprocess.Popen(words, env={}, start_new_session=True)\nnote(self.folder, started.pid)\nstarted.returncode = 0",
        "inaccurate", "",
    ),
    "leaves_an_orphan": (
        "if (middle := os.fork()) == 0:\n    child(self.folder, session=True)\n    os._exit(0)\nos.waitpid(middle, 0)",
        "inaccurate", "",
    ),
    "leaves_a_child_and_aborts": ("child(self.folder, session=True)\nos.abort()", "crashed", "signal 6 (SIGABRT)"),
    "both_go_on": ("os.fork()", "inaccurate", "the solver ended by itself"),
    "leaves_settings": (
        "np.seterr(all='raise')\nwarnings.simplefilter('error')\nos.chdir('/')\nos.umask(0o777)\nos.environ.clear()\nsys.modules.clear()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nctypes.CDLL(None).fesetround(0x800)",
        "inaccurate error wrong crashed", "",
    ),
    "replaces_functions": ("np.sum = np.clip = np.abs = lambda *_, **__: 0.0", "wrong error inaccurate crashed", ""),
    # It claims what is not so.
    "claims_a_bound": (
        "value = problem.objective(zero)\ntype(problem).dual_bound = lambda self, point, dual: value",
        "wrong", "but its points prove only",
    ),
    "claims_an_objective": ("type(problem).objective = lambda self, point: self._optimum", "wrong", "but its points prove only"),
    "claims_to_have_certified": (
        "value = problem.objective(zero)\nproblem.__dict__['certify_repaired'] = lambda it: (Certificate(value, value, 0.0), it.primal)",
        "wrong", "but its points prove only",
    ),
    "claims_no_gap": (
        "Certificate.gap = property(lambda self: 0.0)\nCertificate.relative_gap = property(lambda self: 0.0)", "wrong", "",
    ),
    # It keeps time wrong, or compiles late.
    "stops_its_clock": (
        "clock.perf_counter = lambda: 1.0\nuntil = time.process_time() + 0.6\nwhile time.process_time() < until:\n    pass",
        "error", "its clock is false",
    ),
    "turns_its_clock_back": (
        "clock.perf_counter = lambda: -time.monotonic()", "error", "its clock is false",
    ),
    "compiles_late": ("import numba\nnumba.njit(lambda x: x * x + 1.0)(2.0)", "inaccurate", "the solver ended by itself"),
}  # fmt: skip

#: What never comes back.
HANGS = {
    "loops": "loop()",
    "ignores_signals": "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):\n    signal.signal(number, signal.SIG_IGN)\nloop()",
    "holds_the_interpreter": "ctypes.PyDLL(None).sleep(600)",
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "closes_its_pipe": "os.closerange(3, 1024)\nloop()",
    "prints_without_end": "while True:\n    os.write(1, b'x' * 2**20)",
    "leaves_a_child_and_loops": "child(self.folder, session=True)\nloop()",
}

#: What takes too much memory.
FILLS = {
    "asks_for_too_much": "np.ones(50 * 2**27)",
    "fills": "fill(8)",
    "fills_slowly": "hoard = []\nfor _ in range(12 * 1024):\n    hoard.append(np.ones(2**19))\n    time.sleep(0.001)",
    "fills_in_children": "for _ in range(4):\n    if os.fork() == 0:\n        fill(8)\ntime.sleep(600)",
}

BODIES = {name: body for name, (body, _, _) in ENDS.items()} | HANGS | FILLS


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = some_plugins(tmp_path_factory.mktemp("misbehaving"))
    text = "".join(SOLVER.format(name=name, body=textwrap.indent(body, 8 * " ")) for name, body in BODIES.items())
    (folder / "solvers" / "deeds.py").write_text(IMPORTS + text)
    return folder


def honest(number: int) -> str:
    """A solver of the package, of which no two cases are the same."""
    return f'name = "projected_gradient"\noptions = {{ initial_lipschitz = {number + 1} }}\nlabel = "honest {number}"'


def run(folder: Path, plugins: Path, slot: Executing, deeds: Mapping[str, Any], limits: str) -> Any:
    """The rows of these deeds, each of which has an honest run after it; nothing that they start goes on after their run."""
    tables = [honest(0)]
    for number, name in enumerate(deeds, 1):
        (folder / name).mkdir(parents=True)
        tables += [f'name = "{name}"\noptions = {{ folder = "{folder / name}" }}\nlabel = "{name}"', honest(number)]
    survived = {}

    def look(case: Any, _: object) -> None:
        pids = [int(file.stem) for file in (folder / case.solver).glob("*.pid")] if case.solver in deeds else []
        survived[case.solver_label] = [pid for pid in pids if not await_that(lambda: not is_running(pid), 10.0)]  # noqa: B023

    before = started_here()
    suite = suite_of(*tables, limits=limits)
    runs = run_suite(folder / "out", suite, plugins, slot, on_outcome=look)
    assert not any(survived.values()), survived
    assert await_that(lambda: len(started_here() - before) <= 2), "a worker and a certifier; the last run may have been about to end"
    alone = run_suite(folder / "alone", suite_of(*map(honest, range(len(deeds) + 1)), limits=limits), plugins, slot)
    for label in alone.index:
        for column in ("status", "reason", "primal", "dual", "iterations", "passes", "info"):
            assert runs.loc[label, column] == alone.loc[label, column], (label, column, list(runs.index))
    assert set(alone["status"]) == {"verified"}
    return runs.drop(alone.index)


def test_a_mistake_costs_its_own_row(tmp_path: Path, plugins: Path, slot: Any, capfd: pytest.CaptureFixture[str]) -> None:
    runs = run(tmp_path, plugins, slot, ENDS, "seconds = 20.0")
    assert capfd.readouterr() == ("", "")
    for name, (_, statuses, words) in ENDS.items():
        row = runs.loc[name]
        assert row["status"] in statuses.split(), (name, row["status"], row["reason"])
        assert words in row["reason"], (name, row["reason"])
        if statuses == "crashed" and "cannot be read" not in words:
            assert row["iterations"] == 2, "what it had yielded before is kept"
    assert "Segmentation fault" in json.loads(runs.loc["segfaults", "info"])["output"]
    assert (runs.loc[["claims_a_bound", "claims_an_objective", "claims_no_gap"], "relative_gap"].fillna(1.0) > 0.5).all()
    assert runs.loc["compiles_late", "compile_seconds"] > runs.loc["compiles_late", "solve_seconds"]
    with Store.open(tmp_path / "out") as store:
        samples = store.samples()
    assert samples[samples["run_id"] == runs.loc["both_go_on", "id"]]["iteration"].tolist() == list(range(6))


def test_what_never_comes_back_is_killed_in_time(
    tmp_path: Path, plugins: Path, slot: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "GRACE_SECONDS", 0.1)
    runs = run(tmp_path, plugins, slot, HANGS, "seconds = 0.3")
    assert capfd.readouterr() == ("", "")
    assert set(runs["status"]) == {"timeout"}, runs["status"].to_dict()
    assert (runs["reason"] == "time limit of 0.3 s, killed; relative gap 6.0e-01 proven before").all(), list(runs["reason"])
    most = {"solve_seconds": 0.3 + 0.3, "wall_seconds": 0.3 + 0.6}
    seconds = lesser(runs, most, lambda late: run(tmp_path / "again", plugins, slot, {name: HANGS[name] for name in late}, "seconds = 0.3"))
    for column, end in most.items():
        assert seconds[column].between(0.3, end).all(), seconds.to_dict()
    assert (runs["iterations"] == 2).all()
    assert 0 < len(json.loads(runs.loc["prints_without_end", "info"])["output"]) <= 4000


def test_memory_limits_hold_over_all_that_a_run_has_started(tmp_path: Path, plugins: Path, slot: Any) -> None:
    limits = "seconds = 30.0, memory_gib = 1.0"
    runs = run(tmp_path, plugins, slot, FILLS, limits)
    assert set(runs["status"]) == {"memory"}, runs["reason"].to_dict()
    assert (runs["iterations"] == 2).all()
    filled = runs.drop("asks_for_too_much")
    assert filled["reason"].str.startswith("memory limit of 1 GiB, killed").all()
    most = {"peak_memory_mib": 1024 * 1.1}
    peaks = lesser(filled, most, lambda late: run(tmp_path / "again", plugins, slot, {name: FILLS[name] for name in late}, limits))
    assert peaks["peak_memory_mib"].between(1024, 1024 * 1.1).all(), peaks.to_dict()


#: Starts a thread in a worker that imports it.
THREAD = """
import threading
with open("/proc/self/comm") as file:
    if file.read().strip() == "bench_worker":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def test_a_worker_that_cannot_be_forked_runs_one_case_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a library has started threads, which a fork would stop in the middle of anything."""
    plugins = some_plugins(tmp_path / "plugins", "patient.py")
    with (plugins / "solvers" / "patient.py").open("a") as file:
        file.write(THREAD)
    runs = run_suite(tmp_path / "out", suite_of(solver("reports", "number", 1, 2, 3), honest(0)), plugins)
    assert runs["status"].tolist() == ["inaccurate"] * 3 + ["verified"]
    assert len({json.loads(text)["pid"] for text in runs["info"].iloc[:3]}) == 3


def test_runs_are_forks_of_one_worker_and_their_memory_is_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, start = list[str](), child.start
    monkeypatch.setattr(child, "start", lambda call, *arguments: started.append(call) or start(call, *arguments))
    tables = [f'name = "reports"\noptions = {{ number = {number}, mib = {mib} }}' for number, mib in enumerate((0, 150, 0))]
    runs = run_suite(tmp_path, suite_of(*tables))
    pids = {json.loads(info)["pid"] for info in runs["info"]}
    assert (started.count("bench_mtl.runner.worker:serve"), len(pids)) == (1, 3)
    assert not any(map(is_running, pids))
    first, second, third = runs["peak_memory_mib"]
    assert second > first + 125
    assert third < first + 50
