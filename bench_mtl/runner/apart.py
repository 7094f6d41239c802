"""Runs a case of a solver that somebody plugged in, in a fork of the process that has imported it: whatever a run does to its process, the
next run does not see it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.own_process import begin


class Apart:
    """Forks of this process that talk in its name, one at a time. It ends as they do, so that nobody needs to watch another process."""

    def __init__(self, pipe: WorkerEnd, deadline: SharedDeadline) -> None:
        self._pipe = pipe
        self._deadline = deadline
        self._is_forking = False
        # A child that a solver forks must not be able to talk in the name of the run, or to move its deadline.
        os.register_at_fork(after_in_child=self._close_in_child)

    @property
    def is_possible(self) -> bool:
        """Whether this process can be forked: not where it has other threads, which a fork would stop in the middle of anything."""
        try:
            return len(os.listdir("/proc/self/task")) == 1 and hasattr(os, "pidfd_open")
        except OSError:
            return False

    def run(self, work: Callable[[], None]) -> None:
        """Do the work in a fork, and wait for its end. Where it does not come to its end, this process ends in the same way."""
        reap()
        finished, finishes = os.pipe()
        self._is_forking = True
        try:
            pid = os.fork()
        finally:
            self._is_forking = False
        if pid == 0:
            os.close(finished)
            _do(work, finishes)
        os.close(finishes)
        has_finished = _has_finished(finished, pid)
        if not has_finished:
            self._pipe.close()  # it may have closed its own end of it, and go on
        # It is not waited for yet: until then it can be asked what it has used.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        if not has_finished:
            _end_like(ended.si_code, ended.si_status)

    def _close_in_child(self) -> None:
        if not self._is_forking:
            self._pipe.close()
            self._deadline.detach()


def reap() -> None:
    """Wait for children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_finished(finished: int, pid: int) -> bool:
    """Wait until a child says that its work is done, ends, or closes the descriptor by which it would say so."""
    poll, ended = select.poll(), os.pidfd_open(pid)
    try:
        poll.register(finished, select.POLLIN)
        poll.register(ended, select.POLLIN)
        ready = dict(poll.poll())
        if finished not in ready:  # what it has started may hold the other end
            ready = dict(poll.poll(0.0))
        return finished in ready and bool(os.read(finished, 1))
    finally:
        os.close(finished)
        os.close(ended)


def _do(work: Callable[[], None], finishes: int) -> NoReturn:
    code = 1
    try:
        begin(os.getppid(), "bench_case")
        work()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os.write(finishes, b".")
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _end_like(code: int, status: int) -> NoReturn:
    """End as a child has ended."""
    if code != os.CLD_EXITED:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(status, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.kill(os.getpid(), status)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [status])
    os._exit(status if code == os.CLD_EXITED else 1)
