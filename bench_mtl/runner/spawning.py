"""Starts the processes of this package: bound to their processors before anything is imported, and dead when their parent is."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench_mtl.engine.environment import thread_variables
from bench_mtl.runner.setting import Setting

#: Names the variable by which a process of this package and all that it starts are known.
MARK = "BENCH_MTL_WORKER"


def spawned(call: str, setting: Setting, fds: Sequence[int], mark: str, output: Any) -> subprocess.Popen[bytes]:
    """Start a Python that makes this call, the name of a function with its arguments, and that inherits these file descriptors only."""
    module, _, function = call.partition(":")
    # Before anything is imported: threads that libraries start then must be bound too.
    bind = "" if setting.processors is None else f"import os; os.sched_setaffinity(0, {setting.processors}); "
    command = f"{bind}from {module} import {function.partition('(')[0]}; {function}"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=tuple(fds),
        env={**os.environ, **thread_variables(setting.threads), **_import_path(), MARK: mark},
        start_new_session=True,
    )


def begin(parent: int) -> None:
    """What such a process does first: it leaves interrupts to its parent, and asks to be killed when that dies, however it dies.

    Linux then also leaves it what its children leave behind. Elsewhere the closed pipe ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        set_death_signal, set_child_subreaper = 1, 36
        libc = ctypes.CDLL(None)
        libc.prctl(set_death_signal, signal.SIGKILL)
        libc.prctl(set_child_subreaper, 1)
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)


def _import_path() -> dict[str, str]:
    """The variable that makes a new Python find what this one finds."""
    return {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
