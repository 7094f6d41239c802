"""What a process of this package does for itself: when it begins, when it forks, and to what it has started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NoReturn

_LIBC = ctypes.CDLL(None)

#: For how long to kill children that go on to start more.
_KILL_SECONDS = 5.0


def begin(parent: int, name: str) -> None:
    """What such a process does first: it leaves interrupts to its parent, and asks to be killed when that dies, however it dies.

    Linux then also leaves it what its children leave behind, and shows the name in lists of processes. Elsewhere the closed pipe ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call_itself(name)
    if sys.platform == "linux":
        set_death_signal = 1
        _LIBC.prctl(set_death_signal, signal.SIGKILL)
        adopt_orphans()
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)


def adopt_orphans() -> None:
    """Let this process be the parent of those below it whose own parents have died. Linux only."""
    set_child_subreaper = 36
    _LIBC.prctl(set_child_subreaper, 1)


def call_itself(name: str) -> None:
    """Let lists of processes show this one by a name, of at most 15 characters. Linux only."""
    if sys.platform == "linux":
        set_name = 15
        _LIBC.prctl(set_name, name.encode())


def kill(pids: Iterable[int]) -> None:
    """Kill processes, as far as there are any that may be killed."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def kill_children(but: Collection[int] = ()) -> None:
    """Kill the children of this process, and what these leave behind, which are its children then, and wait for them. Linux only."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (pids := children() - set(but)) and time.monotonic() < deadline:
        kill(pids)
        for pid in pids:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def leave(code: int) -> NoReturn:
    """End this process, a fork, without what its parent would do at its end."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def exit_code(pid: int) -> int:
    """Wait for a child to end, and return its exit code, or minus the number of the signal that has killed it; its number stays its own."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def children() -> set[int]:
    """Return the numbers of the children of this process. Linux only."""
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()))
