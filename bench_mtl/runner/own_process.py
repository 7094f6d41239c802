"""What a process of this package does for itself when it begins."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def begin(parent: int, name: str) -> None:
    """What such a process does first: it leaves interrupts to its parent, and asks to be killed when that dies, however it dies.

    Linux then also leaves it what its children leave behind, and shows the name in lists of processes. Elsewhere the closed pipe ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call_itself(name)
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        adopt_orphans()
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)


def adopt_orphans() -> None:
    """Let this process be the parent of those below it whose own parents have died. Linux only."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def call_itself(name: str) -> None:
    """Let lists of processes show this one by a name, of at most 15 characters. Linux only."""
    if sys.platform == "linux":
        set_name = 15
        ctypes.CDLL(None).prctl(set_name, name.encode())
