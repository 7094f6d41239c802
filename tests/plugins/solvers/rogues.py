"""A solver that does harm: to the processes around it, to files, to the libraries, and with what it hands over.

Every deed is confined to what belongs to its own command: the processes below it, and the folder that the test names.
"""

from __future__ import annotations

import array
import atexit
import builtins
import contextlib
import ctypes
import decimal
import faulthandler
import gc
import json
import locale
import logging
import math
import mmap
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import IterativeSolver, Problem

_QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _family() -> dict[int, str]:
    """The names of the processes of this command, by number, without this one: those below the parent of the template."""
    pid, above = os.getpid(), []
    while pid > 1:
        above.append(pid)
        pid = _parent_of(pid)
    named = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in above}
    command = above[max(place for place, pid in enumerate(above) if named[pid].startswith("bench_")) + 1]
    found = {command: "command"}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            chain = pid
            while chain > 1 and chain != command:
                chain = _parent_of(chain)
            if chain == command and pid not in (command, os.getpid()):
                found[pid] = (entry / "comm").read_text().strip()
    return found


def _each(action: Callable[[int], object], *names: str) -> None:
    """Do something to every process of the command that has one of these names, or to all."""
    for pid, name in _family().items():
        if not names or name in names:
            with contextlib.suppress(OSError, ValueError):
                action(pid)


def _poke(pid: int) -> None:
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "[heap]" in line:
                memory.seek(int(line.split("-")[0], 16))
                memory.write(bytes(4096))


def _write_memory(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    local = (ctypes.c_char * 64)()
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(local), 64)
    start = next(int(line.split("-")[0], 16) for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "[heap]" in line)
    remote = (ctypes.c_void_p * 2)(start, 64)
    libc.process_vm_writev(pid, vector, 1, remote, 1, 0)


def _open_descriptors(pid: int) -> None:
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            descriptor = os.open(f"/proc/{pid}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, b"\xff" * 64)
            os.close(descriptor)


def _sockets() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd") if "socket" in _target(int(name))]


def _target(fd: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""


def _write_to_sockets(content: bytes) -> None:
    for fd in _sockets():
        with contextlib.suppress(OSError):
            os.write(fd, content)


def _send_descriptors() -> None:
    for fd in _sockets():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as pipe:
            pipe.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])


def _swap_descriptors() -> None:
    found = _sockets()
    spare = os.dup(found[0])
    os.dup2(os.open(os.devnull, os.O_RDWR), found[0])
    os.close(spare)


def _unblock_sockets() -> None:
    for fd in _sockets():
        os.set_blocking(fd, False)


def _fork_and_outlive() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(123.25)"], {})
        os._exit(0)


def _many_children() -> None:
    for _ in range(30):
        subprocess.Popen(["sleep", "123.25"], start_new_session=True, env={}, **_QUIET)  # type: ignore[call-overload]


def _stop_in_a_child() -> None:
    if os.fork() == 0:
        signal.raise_signal(signal.SIGSTOP)


def _fill_temporary() -> None:
    with tempfile.TemporaryFile() as file:
        for _ in range(32):
            file.write(bytes(2**20))
    fd = os.memfd_create("rogue")
    os.truncate(fd, 2**24)


def _threads_at_work() -> None:
    def work() -> None:
        while True:
            sum(range(1000))

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()


def _endless_end() -> None:
    atexit.register(lambda: time.sleep(123.25))
    sys.exitfunc = lambda: time.sleep(123.25)  # type: ignore[attr-defined]
    threading._register_atexit(lambda: time.sleep(123.25))  # type: ignore[attr-defined]


class _Lasting:
    def __del__(self) -> None:
        time.sleep(123.25)


def _last_at_the_end() -> None:
    builtins.rogue = _Lasting()  # type: ignore[attr-defined]


def _patch_json() -> None:
    json.dumps = json.loads = lambda *a, **k: "null"  # type: ignore[assignment]
    json.encoder.JSONEncoder.encode = lambda self, o: "null"  # type: ignore[method-assign]


def _patch_numpy() -> None:
    np.dot = np.matmul = np.sum = lambda *a, **k: 0.0  # type: ignore[assignment, misc]
    np.linalg.norm = lambda *a, **k: 0.0  # type: ignore[assignment]


def _patch_clock() -> None:
    time.monotonic = time.perf_counter = time.process_time = lambda: -1e9


def _rewrite_functions() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("bench_mtl.engine"):
            for value in list(vars(module).values()):
                if callable(value) and hasattr(value, "__defaults__") and value.__module__.startswith("bench_mtl.engine"):
                    with contextlib.suppress(Exception):
                        value.__code__ = (lambda *a, **k: None).__code__


def _forget_modules() -> None:
    for name in [name for name in sys.modules if name.startswith(("bench_mtl", "numpy"))]:
        del sys.modules[name]


def _break_builtins() -> None:
    builtins.isinstance = lambda *a: True  # type: ignore[assignment]
    builtins.float = builtins.max = lambda *a, **k: 0.0  # type: ignore[assignment, misc]


def _corrupt_objects() -> None:
    for thing in gc.get_objects():
        if type(thing).__module__.startswith("bench_mtl.runner"):
            with contextlib.suppress(Exception):
                vars(thing).clear()


def _free_everything() -> None:
    ctypes.CDLL(None).free(ctypes.c_void_p(0x1234))


def _unmap() -> None:
    ctypes.CDLL(None).munmap(ctypes.c_void_p(id(np) & ~4095), mmap.PAGESIZE)


def _small_stack() -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (4096, 4096))
    sys.setrecursionlimit(50)


def _mask_all() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def _interrupt_main() -> None:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGALRM)).start()
    time.sleep(0.2)


def _nest() -> Any:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    return nested


#: By name: what is done between two points.
DEEDS: dict[str, Callable[[Path], object]] = {
    # To the processes of the command.
    "pokes_memory": lambda folder: _each(_poke),
    "writes_memory": lambda folder: _each(_write_memory),
    "opens_descriptors_of_others": lambda folder: _each(_open_descriptors),
    "stops_others": lambda folder: _each(lambda pid: os.kill(pid, signal.SIGSTOP)),
    "kills_others": lambda folder: _each(lambda pid: os.kill(pid, signal.SIGKILL)),
    "kills_the_template": lambda folder: _each(lambda pid: os.kill(pid, signal.SIGKILL), "bench_template"),
    "terminates_its_parents_group": lambda folder: os.killpg(os.getpgid(os.getppid()), signal.SIGTERM),
    "queues_signals": lambda folder: _each(lambda pid: ctypes.CDLL(None).sigqueue(pid, signal.SIGUSR1, 0)),
    "stops_itself": lambda folder: signal.raise_signal(signal.SIGSTOP),
    "stops_in_a_child": lambda folder: _stop_in_a_child(),
    "dies_of_a_trap": lambda folder: signal.raise_signal(signal.SIGTRAP),
    # Descriptors.
    "writes_noughts": lambda folder: _write_to_sockets(bytes(64)),
    "writes_a_huge_length": lambda folder: _write_to_sockets(b"\xff" * 24),
    "writes_a_mebibyte": lambda folder: _write_to_sockets(b"[" * 2**20),
    "sends_descriptors": lambda folder: _send_descriptors(),
    "swaps_descriptors": lambda folder: _swap_descriptors(),
    "unblocks_sockets": lambda folder: _unblock_sockets(),
    "closes_all": lambda folder: os.closerange(0, 4096),
    "opens_all": lambda folder: [os.dup(0) for _ in range(200)],
    # Leftovers.
    "outlives": lambda folder: _fork_and_outlive(),
    "has_many_children": lambda folder: _many_children(),
    "fills_temporary_files": lambda folder: _fill_temporary(),
    "has_threads_at_work": lambda folder: _threads_at_work(),
    "ends_never": lambda folder: _endless_end(),
    "is_deleted_for_ever": lambda folder: _last_at_the_end(),
    "finalises_for_ever": lambda folder: weakref.finalize(np, time.sleep, 123.25),
    "leaves_its_folder": lambda folder: (os.chdir(tempfile.mkdtemp(dir=folder)), os.rmdir(os.getcwd())),
    "changes_its_limits": lambda folder: [resource.setrlimit(each, (64, 64)) for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
    "has_a_small_stack": lambda folder: _small_stack(),
    "blocks_all_signals": lambda folder: _mask_all(),
    "is_nice": lambda folder: os.nice(10),
    "rounds_up": lambda folder: ctypes.CDLL("libm.so.6").fesetround(0x800),
    "raises_alarms": lambda folder: _interrupt_main(),
    "dumps_later": lambda folder: faulthandler.dump_traceback_later(0.05, exit=True),
    # Libraries and the interpreter.
    "patches_json": lambda folder: _patch_json(),
    "patches_numpy": lambda folder: _patch_numpy(),
    "patches_clocks": lambda folder: _patch_clock(),
    "rewrites_functions": lambda folder: _rewrite_functions(),
    "forgets_modules": lambda folder: _forget_modules(),
    "breaks_builtins": lambda folder: _break_builtins(),
    "corrupts_objects": lambda folder: _corrupt_objects(),
    "frees_nonsense": lambda folder: _free_everything(),
    "unmaps": lambda folder: _unmap(),
    "traces": lambda folder: (sys.settrace(lambda *a: None), threading.settrace(lambda *a: None)),
    "changes_contexts": lambda folder: (
        decimal.getcontext().__setattr__("prec", 1),
        locale.setlocale(locale.LC_ALL, "C"),
        np.seterr(all="raise"),
    ),
    "turns_warnings_to_errors": lambda folder: (warnings.simplefilter("error"), logging.disable()),
    "seeds": lambda folder: (np.random.seed(0), random.seed(0)),  # noqa: NPY002
    "collects_no_garbage": lambda folder: (gc.disable(), gc.freeze()),
    # Files.
    "writes_results": lambda folder: [path.write_bytes(b"") for path in folder.rglob("*.sqlite*")],
    "links_results": lambda folder: [os.link(path, f"{path}.link") for path in folder.rglob("*.sqlite")],
    "holds_the_lock": lambda folder: [path.unlink() for path in folder.rglob("*.lock")],
    "adds_a_report": lambda folder: [(path.parent / "report.md").write_text("all is well") for path in folder.rglob("*.sqlite")],
}


@dataclass(frozen=True)
class Rogue(IterativeSolver):
    """Yields the zero point, does its deed, and yields the zero point again; or hands over something strange."""

    deed: str = "none"
    folder: str = ""

    name = "rogue"
    requires = frozenset()

    @property
    def label(self) -> str:
        return self.deed

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0)
        with contextlib.suppress(Exception):
            DEEDS[self.deed](Path(self.folder))
        yield Iterate(problem.zero(), None, 1)


class _Changing(np.ndarray):
    """An array that is another one each time that somebody looks."""

    def __array_finalize__(self, obj: Any) -> None:
        if obj is not None:
            np.ndarray.fill(self.view(np.ndarray), 0.25)


class _Number(float):
    def __float__(self) -> float:
        return -1.0

    def __lt__(self, other: object) -> bool:
        return True


def _aliased(problem: Problem) -> Iterator[Iterate]:
    point = np.zeros(problem.point_shape)
    yield Iterate(point, None, 0)
    threading.Thread(target=lambda: [point.fill(k % 3) for k in range(10**6)], daemon=True).start()
    for step in range(1, 5):
        yield Iterate(point, None, step)


def _many(problem: Problem) -> Iterator[Iterate]:
    for step in range(10**9):
        yield Iterate(problem.zero(), None, step)


#: What is handed over instead of the zero point, by name.
HANDS: dict[str, Callable[[Problem], Iterator[Iterate]]] = {
    "changing": lambda problem: iter([Iterate(np.zeros(problem.point_shape).view(_Changing), None, 0)] * 3),
    "aliased": _aliased,
    "many": _many,
    "objects": lambda problem: iter([Iterate(np.full(problem.point_shape, None), None, 0)]),
    "denormal": lambda problem: iter([Iterate(np.full(problem.point_shape, 5e-324), None, 0)]),
    "huge": lambda problem: iter([Iterate(np.full(problem.point_shape, 1e308), np.full(problem.dual_shape, -1e308), 0)]),
    "infinite": lambda problem: iter([Iterate(np.full(problem.point_shape, math.inf), None, 0)]),
    "strange_step": lambda problem: iter([Iterate(problem.zero(), None, _Number(3.0), _Number(2.0))]),  # type: ignore[arg-type]
    "nested": lambda problem: iter([Iterate(_nest(), None, 0)]),
}


@dataclass(frozen=True)
class Strange(IterativeSolver):
    """Hands over something strange."""

    hand: str = "none"

    name = "strange"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"hands_{self.hand}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return HANDS[self.hand](problem)


@dataclass(frozen=True)
class Upright(IterativeSolver):
    """An honest plug-in: gradient steps on the zero point's side, whatever ran before it."""

    number: int = 0

    name = "upright"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"upright_{self.number}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        rng = np.random.default_rng(0)
        for step in range(4):
            yield Iterate(rng.standard_normal(problem.point_shape) / 8.0, None, step)
