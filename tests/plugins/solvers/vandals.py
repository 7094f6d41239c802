"""Solvers that do to the runner and its files what no solver should be able to do, and say how that went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, OneShotSolver


@dataclass(frozen=True)
class Vandal(OneShotSolver):
    """Does `deed` to the file or process that `target` names."""

    deed: str
    target: str

    name = "vandal"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return self.deed

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        try:
            _DEEDS[self.deed](self.target)
            said = "done"
        except OSError as error:
            said = type(error).__name__
        return Answer(Iterate(program.zero()), False, "the zero point", info={"said": said})


def _overwrite(target: str) -> None:
    with open(target, "r+b") as file:
        file.write(bytes(4096))


def _escape(target: str) -> None:
    """Start a process that nobody knows any more: no environment, no group, no session, no parent; and end this one."""
    loop = f"import os, time; open({target!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen([sys.executable, "-S", "-c", loop], env={}, start_new_session=True)
        os._exit(0)
    while not Path(target).exists() or not Path(target).read_text():
        time.sleep(0.01)
    os._exit(0)


_DEEDS: dict[str, Callable[[str], object]] = {
    "overwrites": _overwrite,
    "truncates": lambda target: os.truncate(target, 0),
    "removes": os.unlink,
    "renames": lambda target: os.rename(Path(target).parent, f"{Path(target).parent}-moved"),
    "replaces": lambda target: os.symlink("/dev/null", f"{target}.new"),
    "kills": lambda target: os.kill(int(target), signal.SIGTERM),
    "kills_its_group": lambda target: os.killpg(os.getpgid(int(target)), signal.SIGTERM),
    "traces": lambda target: os.close(os.open(f"/proc/{target}/mem", os.O_RDWR)),
    "writes_elsewhere": lambda target: Path(target).write_text("scratch"),
    "escapes": _escape,
}
