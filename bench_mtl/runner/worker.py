"""The process in which cases run: kept warm, told what to run through a pipe, killed from outside when it must be."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from functools import partial

from bench_mtl.core.types import Record, Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.places import places_of
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.runner.apart import Apart
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.confinement import confine
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.gathered import GONE, TAKEN, Message
from bench_mtl.runner.inprocess import CaseRunner, Ran
from bench_mtl.runner.job import Job, run_job
from bench_mtl.runner.leftovers import State, begin_random_numbers_anew
from bench_mtl.runner.memory import peak_mib
from bench_mtl.runner.own_process import begin
from bench_mtl.runner.setting import Setting


def serve(pipe_fd: int, deadline_fd: int, parent: int) -> None:
    """Serve cases until the pipe closes.

    First receives a `Setting` and sends ("environment", it). Then answers ("run", case or job) with the messages of
    `bench_mtl.runner.gathered`, ("warm", name and options of a solver, kind of problem, target) with ("warmed",), ("check", instance) with
    ("mistake", what is wrong with it, or None), and ("place", instance) with ("placed", whether its data are written to the descriptor that
    came with it). What else comes with a descriptor finds its data there (`bench_mtl.runner.placing`). What it sends are data in the form
    of `bench_mtl.runner.wire`.

    Solvers that come with the package are run here. Each case of one of a plug-in folder has a process of its own, forked from this one.
    """
    begin(parent, "bench_worker")
    faulthandler.enable()  # the parent keeps the last lines of standard error
    pipe, deadline = WorkerEnd(pipe_fd), SharedDeadline(deadline_fd)
    os.close(deadline_fd)
    apart = Apart(pipe, deadline)
    setting: Setting = pipe.receive()
    confine(setting.guarded)  # before any code of a plug-in is imported
    environment = dict(setting.environment())
    runner = CaseRunner(load_registry(setting.plugins, setting.solvers_of), setting.data_dir)
    pipe.send(("environment", environment))
    while True:
        try:
            what, content = pipe.receive()
        except EOFError:
            return
        runner.placed = pipe.descriptor
        if what == "place":
            pipe.send(("placed", runner.place(content)))
            continue
        if what == "check":
            pipe.send(("mistake", runner.find_mistake(content)))
            continue
        pipe.send(TAKEN)
        if what == "warm":
            runner.warm_up(*content)
            pipe.send(("warmed",))
            continue
        run = partial(_run, content, setting, runner, pipe, deadline)
        if setting.solvers_of == "" or not isinstance(content, Case):
            run()
            continue
        if apart.is_possible:
            if not content.instance.has_workers:  # whose threads here a fork would stop in the middle of anything
                runner.make_ready(content.instance)
            apart.run(partial(run, is_apart=True))
        else:
            run(is_last=True)
        pipe.send(GONE)


def _run(
    content: Case | Job, setting: Setting, runner: CaseRunner, pipe: WorkerEnd, deadline: SharedDeadline,
    *, is_apart: bool = False, is_last: bool = False,
) -> None:  # fmt: skip
    """Run a case or a job and tell all there is to tell.

    Parameters
    ----------
    is_apart : this process ends then, with all that the run leaves behind
    is_last : it is to be used no more, whatever that is
    """
    tell: Callable[[Message], None] = pipe.send
    begin_random_numbers_anew()
    if is_apart:
        runner.remap()
    before = None
    if isinstance(content, Case) and not is_apart:
        if content.instance.has_workers:  # whose connections and processes cannot be told from what a solver leaves behind
            is_last = True
        else:
            before = State()
    try:
        if isinstance(content, Case):
            ran = runner.run(content, tell if before is None else before.watching(tell), deadline)
        else:
            ran = run_job(content, setting.data_dir, tell)
    except BaseException as error:  # even a KeyboardInterrupt can only come from the solver here
        ran = Ran(Record(Status.ERROR, describe(error), places=places_of(error)))
    tell(("record", ran.record, peak_mib()))
    # What a job loads and compiles on its way stays, and is no leftover of a solver that somebody plugged in.
    left = () if is_apart or not isinstance(content, Case) else (*ran.changed, *(() if before is None else before.leftovers()))
    tell(("patterns", ran.patterns(), left, is_last))
