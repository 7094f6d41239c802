"""The process that cases are forked from: it loads what is installed and a plug-in folder, builds problems and has all compiled.

A case is a fork of it, which ends with the case, and with all that the case has started. So nothing that a run does to its process is there
for the next one, and a run finds everything loaded.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import random
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import numpy as np

from bench_mtl.core.threads import end_pool
from bench_mtl.core.types import Record, Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.places import places_of
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.inprocess import CaseRunner, Ran
from bench_mtl.runner.job import Job, run_job
from bench_mtl.runner.memory import give_back_free, peak_mib
from bench_mtl.runner.messages import Alone, Ended, Gone, Mistake, Parts, Ready, Taken
from bench_mtl.runner.own_process import begin, children, kill_children, leave
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import can_fork

#: Seconds that a process may take to end once it has told all: nobody watches it any longer.
_ENDING_SECONDS = 2


def serve(pipe_fd: int, deadline_fd: int, parent: int) -> None:
    """Serve cases until the pipe closes.

    First receives a `Setting` and sends `Ready`. Then answers ("check", instance) with `Mistake`, and ("run", case or job) with
    `Taken`, what the run tells, and `Gone`.

    Where it cannot be forked (it has threads or children, or this is not Linux) the case has this process for itself, which ends with it.
    """
    begin(parent, "bench_worker")
    faulthandler.enable()  # the parent keeps the last lines of standard error
    pipe, deadline = WorkerEnd(pipe_fd), SharedDeadline(deadline_fd)
    os.close(deadline_fd)
    setting: Setting = pipe.receive()
    runner = CaseRunner(load_registry(setting.plugins), setting.data_dir)
    pipe.send(Ready(setting.environment()))
    with contextlib.suppress(EOFError):
        while True:
            what, content = pipe.receive()
            if what == "check":
                pipe.send(Mistake(runner.find_mistake(content)))
                continue
            pipe.send(Taken())
            if isinstance(content, Case) and not content.instance.has_workers:  # whose threads here a fork would stop
                runner.make_ready(content, deadline)
            np.random.seed(0)  # noqa: NPY002 - which a fork leaves as it is, unlike the other generator that everybody shares
            run = partial(_run, content, setting, runner, pipe, deadline)
            if not _can_be_forked():
                pipe.send(Alone())
                run()
                return
            pipe.send(Gone(_forked(run)))


def _run(content: Case | Job, setting: Setting, runner: CaseRunner, pipe: WorkerEnd, deadline: SharedDeadline) -> None:
    """Run a case or a job and tell all there is to tell."""

    def fall_silent() -> None:
        """A child that a solver forks must not talk in the name of the run, or move its deadline."""
        pipe.close()
        deadline.detach()

    os.register_at_fork(after_in_child=fall_silent)
    random.seed(0)  # what is drawn from the generators that everybody shares is the same in every run
    try:
        ran = runner.run(content, pipe.send, deadline) if isinstance(content, Case) else run_job(content, setting.data_dir, pipe.send)
    except BaseException as error:  # even a KeyboardInterrupt can only come from the solver here
        ran = Ran(Record(Status.ERROR, describe(error), places=places_of(error)))
    pipe.send(Ended(ran.record, peak_mib()))
    parts = tuple(ran.parts())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends it even in code of its solver
    signal.alarm(_ENDING_SECONDS)
    pipe.send(Parts(parts))


def _can_be_forked() -> bool:
    """Whether this process can be forked: of other threads a fork would stop in the middle of anything, and children would serve them all.

    Threads of OpenBLAS end at every fork, so one is made for that where there are any.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # those that have ended are none
            pass
    if not can_fork() or children():
        return False
    if _count_threads() > 1:
        end_pool()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return _count_threads() == 1


def _count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _forked(work: Callable[[], None]) -> int:
    """Do the work in a fork, kill all that it leaves behind, and return how it has ended: its exit code, or minus the signal's number."""
    give_back_free()
    pid = os.fork()
    if pid == 0:
        _do(work)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    kill_children()
    return code


def _do(work: Callable[[], None]) -> NoReturn:
    code = 1
    gc.freeze()  # lest it copies every page when it collects garbage
    try:
        begin(os.getppid(), "bench_case")
        os.setsid()
        work()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        leave(code)
