"""A solver that writes where it should not."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.runner.wire import HEAD


def _only(name: str) -> Any:
    (found,) = (thing for thing in gc.get_objects() if type(thing).__name__ == name)
    return found


def _write(content: bytes) -> None:
    os.write(_only("WorkerEnd")._socket.fileno(), content)


def _frame(text: bytes) -> bytes:
    return HEAD.pack(len(text), len(text)) + text


def _write_below() -> None:
    """To all descriptors that somebody finds by counting."""
    for fd in range(3, 200):
        with contextlib.suppress(OSError):
            os.write(fd, b"\x00\x00\x03\xe8" * 16)


def _fill() -> None:
    def fill() -> None:
        while True:
            _write(b"[" * 2**16)

    threading.Thread(target=fill, daemon=True).start()


def _push() -> None:
    deadline = _only("SharedDeadline")

    def push() -> None:
        while True:
            deadline.value = time.monotonic() + 0.4
            time.sleep(0.001)

    threading.Thread(target=push, daemon=True).start()


_DEEDS: dict[str, Any] = {
    "start_of_a_head": lambda: _write(b"\x00\x00\x03\xe8"),
    "start_of_a_frame": lambda: _write(_only("WorkerEnd")._token + HEAD.pack(1000, 1000) + b"["),
    "huge_length": lambda: _write(_only("WorkerEnd")._token + HEAD.pack(2**62, 2**20)),
    "garbage": lambda: _write(os.urandom(1000)),
    "frame": lambda: _write(_frame(b'["void", []]')),
    "frame_of_before": lambda: _write(bytes(16) + _frame(b'["void", []]')),
    "shutdown": lambda: _only("WorkerEnd")._socket.shutdown(socket.SHUT_RDWR),
    "fills": _fill,
    "huge_deadline": lambda: setattr(_only("SharedDeadline"), "value", 1e193),
    "negative_deadline": lambda: setattr(_only("SharedDeadline"), "value", -5.0),
    "no_deadline": lambda: setattr(_only("SharedDeadline"), "value", float("nan")),
    "pushes": _push,
}


@dataclass(frozen=True)
class Strays(IterativeSolver):
    """Yields the zero point, writes, and works on for ever."""

    deed: str = "below"

    name = "strays"
    requires = frozenset()

    @property
    def label(self) -> str:
        return self.deed

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0)
        if self.deed == "below":
            _write_below()
            yield Iterate(problem.zero(), None, 1)
            return
        _DEEDS[self.deed]()
        while True:
            pass
