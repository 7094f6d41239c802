"""Resident memory of processes, their processor time, and what they have started, all seen from outside."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

_LINUX = sys.platform == "linux"
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Resident memory of one process now, MiB; 0 once it has ended."""
    try:
        if _LINUX:
            with open(f"/proc/{pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE_MIB
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    except (OSError, IndexError, psutil.Error):
        return 0.0


def joint_mib(pids: Sequence[int]) -> float:
    """Return the memory that several processes use together, MiB, where what they share counts once; this takes longer to find out.

    Nobody says which of them share a page. What each has for itself counts, and of what is shared at least the most that any of them has,
    whoever else has it, or all shares of them, where that is more.
    """
    own, shared, shares = 0.0, [0.0], 0.0
    for pid in pids:
        try:
            found = psutil.Process(pid).memory_full_info()
            own += found.uss
            shared.append(found.rss - found.uss)
            shares += found.pss
        except (OSError, AttributeError, psutil.Error):
            own += resident_mib(pid) * 2**20
    return max(own + max(shared), shares) / 2**20


def give_back_free() -> None:
    """Give memory that is free back to the system, where the C library can: a fork would copy its pages."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, all its threads, the children that it has waited for, and what it has started; seconds."""
    total = 0.0
    for each in (pid, *descendants(pid)):
        with contextlib.suppress(OSError, psutil.Error):
            if _LINUX:  # the ticks after the name, in parentheses: user, system, and of the children both again
                total += sum(map(int, Path(f"/proc/{each}/stat").read_bytes().rpartition(b")")[2].split()[11:15])) * _TICK_SECONDS
            else:
                times = psutil.Process(each).cpu_times()
                total += times.user + times.system
    return total


def descendants(pid: int) -> list[int]:
    """The processes that `pid` and its children have started, as far as they are their parents still."""
    if not _LINUX:
        try:
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return []
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    """Read for each thread, because a child belongs to the thread that started it. Looking through all processes would take far longer."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


def forget_peak() -> None:
    """Let `peak_mib` of this process begin anew, where the system can."""
    if _LINUX:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float | None:
    """The largest resident memory of this process since `forget_peak`, MiB; None where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")), None)
    except OSError:
        return None
