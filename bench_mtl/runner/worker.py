"""The process in which cases run: kept warm, told what to run through a pipe, killed from outside when it must be."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable

from bench_mtl.core.types import Record, Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.gathered import TAKEN, Message
from bench_mtl.runner.inprocess import CaseRunner, Ran
from bench_mtl.runner.job import run_job
from bench_mtl.runner.leftovers import State
from bench_mtl.runner.memory import peak_mib
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import begin


def serve(pipe_fd: int, deadline_fd: int, parent: int) -> None:
    """Serve cases until the pipe closes.

    First receives a `Setting` and sends ("environment", it). Then answers ("run", case or job) with the messages of
    `bench_mtl.runner.gathered`, ("warm", name and options of a solver) with ("warmed",), and ("check", instance) with ("mistake", what is
    wrong with it, or None). What it sends are data in the form of `bench_mtl.runner.wire`.
    """
    begin(parent, "bench_worker")
    faulthandler.enable()  # the parent keeps the last lines of standard error
    pipe, deadline = WorkerEnd(pipe_fd), SharedDeadline(deadline_fd)
    # A child that a solver forks must not be able to talk in the name of the run, or to move its deadline.
    os.register_at_fork(after_in_child=pipe.close)
    os.register_at_fork(after_in_child=deadline.detach)
    setting: Setting = pipe.receive()
    environment = dict(setting.environment())
    runner = CaseRunner(load_registry(setting.plugins, setting.solvers_of), setting.data_dir)
    pipe.send(("environment", environment))
    while True:
        try:
            what, content = pipe.receive()
        except EOFError:
            return
        if what == "check":
            pipe.send(("mistake", runner.find_mistake(content)))
            continue
        if what == "warm":
            pipe.send(TAKEN)
            runner.warm_up(*content)
            pipe.send(("warmed",))
            continue
        pipe.send(TAKEN)
        before = State()
        try:
            if isinstance(content, Case):
                ran = runner.run(content, before.watching(pipe.send), deadline)
            else:
                ran = run_job(content, setting.data_dir, pipe.send)
        except BaseException as error:  # even a KeyboardInterrupt can only come from the solver here
            ran = Ran(Record(Status.ERROR, describe(error)))
        tell: Callable[[Message], None] = pipe.send
        tell(("record", ran.record, peak_mib()))
        # What a job loads and compiles on its way stays, and is no leftover of a solver that somebody plugged in.
        tell(("patterns", ran.patterns(), isinstance(content, Case) and (ran.is_void or before.has_leftovers())))
