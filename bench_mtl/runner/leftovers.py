"""What a run leaves behind in its process, for the runs after it, each in words.

What reads the state of the process is bound to names of this module when it is imported, so that a solver that replaces a function of the
standard library or of NumPy does not blind it.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import gc
import os
import resource
import signal
import sys
import threading
import warnings
from _thread import _count as python_threads
from _thread import stack_size
from collections.abc import Callable, Iterator, Mapping
from decimal import getcontext
from faulthandler import cancel_dump_traceback_later
from functools import lru_cache, partial
from gc import collect, get_freeze_count, get_objects
from locale import LC_ALL, setlocale
from os import getcwd, getpid, getpriority, listdir, lstat, readlink
from os.path import basename
from random import seed as seed_random
from resource import getrlimit
from signal import getitimer, getsignal, pthread_sigmask, set_wakeup_fd
from socket import getdefaulttimeout
from threading import getprofile, gettrace
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy import get_printoptions, getbufsize, geterr, geterrcall
from numpy.random import seed as seed_numpy

from bench_mtl.core.threads import pool_threads
from bench_mtl.runner.gathered import WARM_UP, Message
from bench_mtl.runner.memory import descendants, resident_mib

#: What a run may still hold when it is over, beyond what was there when it began: caches of libraries and the like.
_KEPT_MIB = 50.0
#: How long threads that libraries keep for the next call may look for more work before they rest, seconds.
_SETTLING_SECONDS = 0.25
#: How long a thread that ends may still be listed.
_ENDING_SECONDS = 0.01
#: Of what a run leaves behind, how many things are named, and how many of one kind.
_MOST_NAMED, _MOST_OF_A_KIND = 20, 3
#: Characters of the name of one of them.
_LONGEST_NAME = 80

_LIMITS = {name: getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"}
_TIMERS = {name: getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")}
_SIGNALS = {number: getattr(number, "name", f"signal {number}") for number in signal.valid_signals()}
#: Lines of /proc/self/status that no run has any business to change.
_STATUS = frozenset({
    "Umask", "Uid", "Gid", "Groups", "VmLck", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
    "Seccomp", "Seccomp_filters", "Cpus_allowed", "Mems_allowed", "THP_enabled", "CoreDumping", "untag_mask",
})  # fmt: skip
#: Of these the sets of signals, and the signals that are anybody's: the C library keeps two for its threads.
_SIGNAL_SETS = frozenset({"SigBlk", "SigIgn", "SigCgt"})
_VALID = sum(1 << (number - 1) for number in _SIGNALS)
#: Settings of the process that `prctl` tells: its name for them, and its number.
_PRCTL = {"dumpable": 3, "keep-capabilities": 7, "timer slack": 30, "early kill": 34, "no huge pages": 42}
#: Names of `sys` that hold something which no run may replace.
_OF_SYS = (
    "stdin", "stdout", "stderr", "excepthook", "displayhook", "unraisablehook", "breakpointhook", "dont_write_bytecode", "flags", "argv",
    "tracebacklimit", "modules", "path",
)  # fmt: skip
_ASKED_OF_SYS = (
    "gettrace", "getprofile", "getrecursionlimit", "getswitchinterval", "getdlopenflags", "get_int_max_str_digits",
    "get_coroutine_origin_tracking_depth",
)  # fmt: skip
_OF_THE_GARBAGE_COLLECTOR = {"enabled": gc.isenabled, "thresholds": gc.get_threshold, "debug flags": gc.get_debug}

_affinity, _scheduler, _scheduling = (
    getattr(os, name, None) for name in ("sched_getaffinity", "sched_getscheduler", "sched_getparam")
)  # fmt: skip
_of_sys = {name: getattr(sys, name) for name in _ASKED_OF_SYS}
_environ = os.environ
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None)
_prctl = getattr(_libc, "prctl", None) if _LINUX else None

Settings = Mapping[str, object]
_HANDLERS = "handlers of signals"
_THREADS_OF_LIBRARIES = "threads of libraries"  # those loaded before the run: one that it loads itself, as CVXPY does, changes no other


@functools.cache
def _has_much_frozen() -> bool:
    """Whether objects are frozen in this process, as in all that are forked from a template. Counting them takes milliseconds."""
    return get_freeze_count() > 0


class Freezing:
    """Tells whether what the garbage collector looks at has been frozen (`gc.freeze`) since this object was made."""

    def __init__(self) -> None:
        self._canary: list[None] | None = [] if _has_much_frozen() else None

    @property
    def has_happened(self) -> bool:
        """Whether the canary is in none of the generations any more, or something is frozen where nothing was."""
        if self._canary is None:
            return get_freeze_count() > 0
        return not any(found is self._canary for generation in range(3) for found in get_objects(generation))


class State:
    """What a run may change for the runs after it in the same process."""

    def __init__(self) -> None:
        """Look at what there is now, before the run."""
        self._settings, self._modules = settings(), dict(sys.modules)
        self._measure()

    def _measure(self) -> None:
        if len(sys.modules) != len(self._modules):  # libraries set much as they are imported
            # The driver has a handler of its own while it runs.
            self._settings = {**settings(), _HANDLERS: self._settings[_HANDLERS]}
            self._modules = {**sys.modules, **self._modules}
        self._descriptors, self._tasks = _descriptors(), _tasks()
        self._threads = python_threads() - pool_threads()
        self._processes, self._shared = _processes(), _shared_memory()
        self._resident_mib, self._frozen = resident_mib(getpid()), Freezing()

    def watching(self, tell: Callable[[Message], None]) -> Callable[[Message], None]:
        """`tell`, which measures anew when the problem is built, when the solver is asked whether it takes it, and when all is compiled.

        What these have loaded may stay.
        """

        def told(message: Message) -> None:
            if message[0] in ("problem", "solver") or message[:2] == ("phase", WARM_UP):
                self._measure()
            tell(message)

        return told

    def leftovers(self) -> tuple[str, ...]:
        """Name all that the run has left: memory, threads, processes, descriptors, timers, and settings of the whole process."""
        found: list[str] = []
        for look in (self._changed_settings, self._added_threads, self._others, self._held_memory):
            try:
                found += look()
            except (Exception, SystemExit) as error:  # a limit on descriptors or memory may be what is left
                found.append(f"a state that cannot be looked at ({type(error).__name__})")
        return tuple(name[:_LONGEST_NAME] for name in found[:_MOST_NAMED])

    def _changed_settings(self) -> Iterator[str]:
        yield from differences(self._settings, settings())
        loaded = sys.modules
        replaced = sorted(name for name, module in self._modules.items() if loaded.get(name) is not module)
        if replaced:
            yield _with_some("sys.modules", replaced)

    def _added_threads(self) -> Iterator[str]:
        if tasks := _tasks() - self._tasks:
            cancel_dump_traceback_later()
            sleep(_ENDING_SECONDS)
            if tasks - _tasks():
                yield "a timer of faulthandler"
        added = python_threads() - pool_threads() - self._threads
        if added > 0:
            yield _counted(added, "thread")
        elif busy := _busy(self._tasks):
            yield f"{_counted(busy, 'thread')} of a library at work"

    def _others(self) -> Iterator[str]:
        if added := len(_processes() - self._processes):
            yield _counted(added, "process")
        before, now = self._descriptors, _descriptors()
        if opened := [target for fd, target in now.items() if fd not in before]:
            yield _with_some(_counted(len(opened), "open descriptor"), opened)
        if changed := [f"{fd}" for fd, target in before.items() if now.get(fd) != target]:
            yield _with_some("closed or changed descriptors", changed)
        if shared := sorted(_shared_memory() - self._shared):
            yield _with_some("shared memory", shared)

    def _held_memory(self) -> Iterator[str]:
        if self._frozen.has_happened:
            yield "objects that are no garbage any more (gc.freeze)"
        most = self._resident_mib + _KEPT_MIB
        if resident_mib(getpid()) <= most:
            return
        collect()  # what is garbage, or freed and only not given back yet, is not held
        if _LINUX and (trim := getattr(_libc, "malloc_trim", None)) is not None:
            trim(0)
        held = resident_mib(getpid()) - self._resident_mib
        if held > _KEPT_MIB:
            yield f"{held:.0f} MiB of memory"


def begin_random_numbers_anew() -> None:
    """Let what is drawn from the global generators be the same in every run, whatever the runs before have drawn."""
    seed_numpy(0)  # noqa: NPY002 - the very one that others use
    seed_random(0)


def settings() -> Settings:
    """Return what holds in the whole process, or in its main thread, by name. What cannot be read has the reason for a value."""
    return {name: _read(read) for name, read in _READERS.items()}


def differences(before: Settings, now: Settings) -> Iterator[str]:
    """Name the settings that have changed."""
    for name, was in before.items():
        value = now.get(name)
        if was is _ABSENT or was == value:
            continue
        if isinstance(was, dict) and isinstance(value, dict):
            keys = was if name == _THREADS_OF_LIBRARIES else {**was, **value}
            changed = [key for key in keys if was.get(key, _ABSENT) != value.get(key, _ABSENT)]
            if changed:
                yield _with_some(name, changed)
        else:
            yield name


class _Absent:
    """Of a library that has not been imported yet."""


_ABSENT = _Absent()


def _read(read: Callable[[], object]) -> object:
    try:
        return read()
    except Exception as error:
        return type(error).__name__


def _limits() -> object:
    return {name: getrlimit(number) for name, number in _LIMITS.items()}


def _timers() -> object:
    return {name: getitimer(number)[0] > 0.0 for name, number in _TIMERS.items()}


def _posix_timers() -> object:
    if not _LINUX:
        return 0
    try:
        with open("/proc/self/timers", "rb") as file:
            return file.read().count(b"ID:")
    except FileNotFoundError:  # a system that does not list them
        return 0


def _handlers() -> object:
    return {name: getsignal(number) for number, name in _SIGNALS.items()}


def _masked() -> object:
    return set(pthread_sigmask(signal.SIG_BLOCK, ()))


def _wakes() -> object:
    fd = set_wakeup_fd(-1)
    if fd != -1:
        set_wakeup_fd(fd)
    return fd


def _status() -> object:
    if not _LINUX:
        return {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        pairs = (line.partition(":") for line in file)
        found = {name: value.strip() for name, _, value in pairs if name in _STATUS}
    for name in found.keys() & _SIGNAL_SETS:
        found[name] = f"{int(found[name], 16) & _VALID:x}"
    return found


def _prctls() -> object:
    return {} if _prctl is None else {name: _prctl(number, 0, 0, 0, 0) for name, number in _PRCTL.items()}


def _dies_with_parent() -> object:
    if _prctl is None:
        return 0
    number, get_death_signal = ctypes.c_int(0), 2
    _prctl(get_death_signal, ctypes.byref(number), 0, 0, 0)
    return number.value


def _may_be_killed_first() -> object:
    if not _LINUX:
        return ""
    with open("/proc/self/oom_score_adj", encoding="ascii") as file:
        return file.read()


@lru_cache(maxsize=1)
def _myself() -> Any:
    import psutil

    return psutil.Process()


def _input_priority() -> object:
    return tuple(_myself().ionice()) if _LINUX else ()


def _schedule() -> object:
    parameters = None if _scheduling is None else _scheduling(0).sched_priority
    return None if _scheduler is None else (_scheduler(0), parameters)


#: Numbers whose sums and products tell how the processor rounds, and whether it takes tiny numbers for 0; never seen by a compiler.
_ONE, _HALF_LAST, _THREE_QUARTERS, _TINY, _TINIEST = 1.0, 2.0**-53, 1.5 * 2.0**-53, 2.0**-1022, 5e-324


def _rounding() -> object:
    sums = (_ONE + _HALF_LAST, -_ONE - _HALF_LAST, _ONE + _THREE_QUARTERS)
    mode = getattr(_libc, "fegetround", None)
    return sums, None if mode is None else mode()


def _tiny_numbers() -> object:
    return (_TINY * 0.5 > 0.0, _TINIEST * _ONE > 0.0)


def _traps() -> object:
    caught = getattr(_libc, "fegetexcept", None)
    return None if caught is None else caught()


def _decimals() -> object:
    context = getcontext()
    traps = tuple(kind for kind, is_on in context.traps.items() if is_on)
    return context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps


def _of_scipy() -> object:
    special = sys.modules.get("scipy.special")
    return _ABSENT if special is None else special.geterr()


def _of_numba() -> object:
    parallel, config = sys.modules.get("numba.np.ufunc.parallel"), sys.modules.get("numba.core.config")
    if parallel is None or config is None:
        return _ABSENT
    return parallel.get_num_threads() if parallel._is_initialized else config.NUMBA_NUM_THREADS


@lru_cache(maxsize=1)
def _thread_libraries(loaded: int) -> Any:
    """The libraries for linear algebra and for OpenMP; looking for them takes a millisecond, so that it is done when modules are added."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().lib_controllers


def _threads_of_libraries() -> object:
    return {basename(library.filepath): library.num_threads for library in _thread_libraries(len(sys.modules))}


_READERS: Mapping[str, Callable[[], object]] = {
    _THREADS_OF_LIBRARIES: _threads_of_libraries,  # first: what looks for them is imported here, and sets a variable of the environment
    "limits": _limits,
    "timers": _timers,
    "POSIX timers": _posix_timers,
    _HANDLERS: _handlers,
    "blocked signals": _masked,
    "wake-up descriptor of signals": _wakes,
    "process": _status,
    "process settings": _prctls,
    "signal at the end of the parent": _dies_with_parent,
    "order of killing": _may_be_killed_first,
    "nice": partial(getpriority, os.PRIO_PROCESS, 0),
    "scheduler": _schedule,
    "priority of input and output": _input_priority,
    "processors": (lambda: None) if _affinity is None else partial(_affinity, 0),
    "working directory": getcwd,
    "environment": lambda: dict(_environ),
    "os.environ": lambda: id(os.environ),
    "rounding mode": _rounding,
    "tiny numbers": _tiny_numbers,
    "floating-point traps": _traps,
    "sys": lambda: {name: id(getattr(sys, name, None)) for name in _OF_SYS},
    "settings of sys": lambda: {name: read() for name, read in _of_sys.items()},
    "sys.path": lambda: tuple(sys.path),
    "sys.meta_path": lambda: tuple(map(id, sys.meta_path)),
    "sys.path_hooks": lambda: tuple(map(id, sys.path_hooks)),
    "tracing of threads": lambda: (gettrace(), getprofile(), threading.excepthook),
    "stack of threads": stack_size,
    "garbage collector": lambda: {name: read() for name, read in _OF_THE_GARBAGE_COLLECTOR.items()},
    "callbacks of the garbage collector": lambda: tuple(map(id, gc.callbacks)),
    "warnings": lambda: (tuple(warnings.filters), warnings.showwarning, warnings.warn),
    "locale": partial(setlocale, LC_ALL),
    "decimal context": _decimals,
    "timeout of sockets": getdefaulttimeout,
    "faulthandler": faulthandler.is_enabled,
    "numpy.seterr": geterr,
    "numpy.seterrcall": geterrcall,
    "numpy.setbufsize": getbufsize,
    "numpy.set_printoptions": lambda: dict(get_printoptions()),
    "numpy.random": lambda: type(np.random.mtrand._rand._bit_generator),
    "scipy.special.seterr": _of_scipy,
    "threads of Numba": _of_numba,
}


def _tasks() -> set[str]:
    return set(listdir("/proc/self/task")) if _LINUX else set()


def _busy(known: set[str]) -> int:
    """Return how many threads beside those known go on working. Libraries keep some for the next call, which rest after a while."""
    until = monotonic() + _SETTLING_SECONDS
    while (busy := sum(map(_is_working, _tasks() - known))) and monotonic() < until:
        sleep(0.001)
    return busy


def _is_working(task: str) -> bool:
    try:
        with open(f"/proc/self/task/{task}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False


def _processes() -> set[int]:
    return set(filter(_is_alive, descendants(getpid())))


def _is_alive(pid: int) -> bool:
    if not _LINUX:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _descriptors() -> dict[int, str]:
    """What each open descriptor is of."""
    if not _LINUX:
        return {}
    found = {}
    for name in listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself
            found[int(name)] = readlink(f"/proc/self/fd/{name}")
    return found


def _shared_memory() -> set[str]:
    """Names of this user in the memory that processes share."""
    found, mine = set(), os.getuid()
    with contextlib.suppress(OSError):
        for name in listdir("/dev/shm"):
            with contextlib.suppress(OSError):
                if lstat(f"/dev/shm/{name}").st_uid == mine:
                    found.add(name)
    return found


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"


def _with_some(what: str, names: list[str]) -> str:
    shown = ", ".join(ascii(name)[1:-1] for name in names[:_MOST_OF_A_KIND])
    return f"{what} ({shown}{', ...' if len(names) > _MOST_OF_A_KIND else ''})"
