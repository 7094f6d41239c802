"""A process that was started here, with a pipe to it, as its parent sees it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from typing import Any

from bench_mtl.runner.channel import ParentEnd
from bench_mtl.runner.memory import descendants
from bench_mtl.runner.messages import Message
from bench_mtl.runner.own_process import kill
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import sentence_of, start

#: The longest that nobody looks at a child.
LONGEST_WAIT_SECONDS = 0.05
#: How long one whose pipe is closed may take to end.
_EXIT_SECONDS = 1.0
#: Of what it prints, the last bytes are kept.
_TAIL_BYTES = 4000


class Child:
    """A process that calls a function with its end of a pipe, these descriptors, and the number of its parent. For one thread at a time."""

    def __init__(self, call: str, setting: Setting, *fds: int) -> None:
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            pipe, end_of_pipe = socket.socketpair()
            ours.enter_context(pipe)
            theirs.enter_context(end_of_pipe)
            printed, prints = os.pipe()
            ours.callback(os.close, printed)
            theirs.callback(os.close, prints)
            self._process = start(call, setting, [end_of_pipe.fileno(), *fds], prints)
            self.pipe = ParentEnd(pipe.detach())
            ours.pop_all()
        self._printed = printed
        os.set_blocking(printed, False)
        self._output = b""
        self._poll = select.poll()
        self._poll.register(self.pipe, select.POLLIN)
        self._poll.register(printed, select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and self._process.poll() is None

    def send(self, content: Any) -> None:
        self.pipe.send(content)

    def next(self, seconds: float) -> Message | None:
        """Return the next message, if it comes within `seconds`; what is printed meanwhile is read, lest it waits for a reader.

        Raises EOFError or OSError where it has closed its end and all it sent has been taken, UnreadableError for what is no message.
        """
        message = self.pipe.take()
        if message is not None:
            return message
        ready = [fd for fd, _ in self._poll.poll(1000.0 * seconds)]
        if self._printed in ready:
            self._read_output()
        if self.pipe.fileno() in ready:
            self.pipe.read()
        return self.pipe.take()

    def answer(self, seconds: float) -> Message | None:
        """Return the next message, if it comes within `seconds`; raises as `next`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0:
            if (message := self.next(min(left, LONGEST_WAIT_SECONDS))) is not None:
                return message
        return None

    def output(self) -> str:
        """Return the end of what it has printed."""
        self._read_output()
        return self._output.decode(errors="replace").strip()

    def how_it_ended(self) -> str:
        """Say how it has ended, which it has time for once it has closed its pipe."""
        deadline = time.monotonic() + _EXIT_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        return sentence_of(self._process.returncode)

    def end(self) -> None:
        """Kill it and all that it has started, at once, wherever it is. Safe to call from another thread."""
        if self._process.returncode is None:  # until it is waited for, its number is nobody else's
            started = descendants(self.pid)
            self._process.kill()
            kill(started)

    def close(self) -> None:
        """`end`, and leave nothing behind."""
        self.end()
        self._process.close()
        self.pipe.close()
        if self._printed >= 0:
            os.close(self._printed)
            self._printed = -1

    def _read_output(self) -> None:
        if self._printed >= 0:
            with contextlib.suppress(BlockingIOError, KeyError):  # nothing there; its end has been seen before
                chunk = os.read(self._printed, 2**20)
                if not chunk:
                    self._poll.unregister(self._printed)
                self._output = (self._output + chunk)[-_TAIL_BYTES:]
