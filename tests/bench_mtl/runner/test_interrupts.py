"""Runs that are told to stop, refused, or cannot write: an exit code, a line, and the same command goes on."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import PLUGINS, Command, await_line, await_that, cases_of, command_for, run_suite, runs_in, solver, suite_text

from bench_mtl.engine.suite_file import read_suite
from bench_mtl.results import Store
from bench_mtl.runner import InlineExecutor, Setting, run_cases
from bench_mtl.runner.interrupt import Interrupt
from bench_mtl.runner.memory import descendants

GOES_ON = "bench-mtl: interrupted; what has finished is stored, the same command goes on from there"


def still_to_run(command: Command) -> list[str]:
    suite = read_suite(str(command.suite))
    with Store.create(command.out, suite) as store:
        return [case.solver_label for case in store.plan(cases_of(suite, traced=False))]


def test_one_interrupt_finishes_the_running_case_and_a_second_run_is_refused(tmp_path: Path, command: Callable[..., Any]) -> None:
    waits = [f"waits_{number}" for number in range(1, 101)]  # many, for it may take long until the second run is refused
    text = suite_text('name = "silent"', solver("waits", "number", *range(1, 101)), limits="seconds = 0.5")
    first = command_for(tmp_path, text)
    with first.start() as process:
        await_line(process, "[1/101]")
        second = command(*first.words)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (second.code, len(second.err)) == (2, 1)
    assert "another run is using this folder" in second.err[0]
    assert process.returncode == 130
    assert stderr.splitlines() == ["bench-mtl: stopping after the running cases; Ctrl-C again stops now", GOES_ON]
    assert "waits_1: timeout" in stdout
    assert first.leaves_nothing()
    ended = runs_in(first.out)["status"].to_dict()
    assert ended == {"silent": "error", **dict.fromkeys(waits[: len(ended) - 1], "timeout")}
    assert still_to_run(first) == waits[len(ended) - 1 :] != []


@pytest.mark.parametrize(
    ("numbers", "slots", "options"), [([signal.SIGINT, signal.SIGINT], "2", ()), ([signal.SIGTERM], "1", ("--force", "--retry-failed"))]
)
def test_two_interrupts_and_a_termination_stop_now(
    tmp_path: Path, numbers: list[signal.Signals], slots: str, options: tuple[str, ...]
) -> None:
    if int(slots) > len(os.sched_getaffinity(0)):
        pytest.skip("one processor only")
    text = suite_text('name = "silent"', solver("waits", "number", 1, 2, 3), limits="seconds = 60.0")
    command = command_for(tmp_path, text)
    with command.start("--slots", slots, *options) as process:
        await_line(process, "[1/4]")
        assert await_that(lambda: len(descendants(process.pid)) >= 1 + 2 * int(slots))  # a certifier each
        process.send_signal(numbers[0])
        for number in numbers[1:]:
            process.stderr.readline()  # type: ignore[union-attr]  # that it stops after the running cases
            process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    without = " without --force and --retry-failed" if options else ""
    assert stderr.strip().splitlines()[-1] == GOES_ON.replace("the same command", f"the same command{without}")
    assert "waits" not in stdout
    assert command.leaves_nothing()
    assert still_to_run(command) == ["waits_1", "waits_2", "waits_3"]


def test_an_interrupt_raises_where_it_is_looked_for_and_once_more_where_it_strikes() -> None:
    """In the middle of a lock of a future it would leave that taken for ever."""
    interrupt = Interrupt(at_once=False, notify=print)
    with interrupt:
        assert not interrupt.asks()
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asks()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.asks()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_runs_in_this_thread_is_interrupted_where_it_is(number: signal.Signals) -> None:
    with Interrupt(at_once=True, notify=print) as interrupt:
        if number == signal.SIGINT:
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):  # should the first have been lost
            interrupt.asks()


def test_threads_that_do_not_end_do_not_keep_a_command_that_was_stopped() -> None:
    code = """
import threading, time
import click
from bench_mtl import cli

def stopped():
    threading.Thread(target=time.sleep, args=[60]).start()
    print("said")
    raise KeyboardInterrupt

cli.cli, cli._ENDING_SECONDS = click.command()(stopped), 0.1
cli.main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (result.returncode, result.stdout, result.stderr.strip()) == (130, "said\n", "bench-mtl: interrupted")


def test_a_full_disk_ends_in_a_line_and_can_be_gone_on_from(tmp_path: Path, command: Callable[..., Any]) -> None:
    more = 30  # cases than fit
    text = suite_text(solver("waits", "number", *range(more), pause=0.0), limits="seconds = 60.0, iterations = 400")
    first = command_for(tmp_path, text)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, limits[1]))
    try:
        result = command(*first.words, "--isolation", "inline", cwd=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.code, len(result.err)) == (3, 1), result.text
    assert "the same command goes on from there" in result.err[0]
    before = runs_in(first.out)
    assert 0 < len(before) < more
    after = run_suite(first.out, read_suite(str(first.suite)), executor=InlineExecutor(Setting(1, PLUGINS)), traced=False)
    assert after.iloc[: len(before)].equals(before)


def test_a_folder_that_cannot_be_written_is_refused_in_a_line(tmp_path: Path, command: Callable[..., Any]) -> None:
    refused = command_for(tmp_path, suite_text('name = "silent"'))
    refused.out.mkdir(mode=0o500)
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", refused.out]
    is_root = os.geteuid() == 0  # who may write where the mode forbids it
    if is_root and subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        result = command(*refused.words, cwd=tmp_path)
        assert (result.code, len(result.err)) == (2, 1), result.text
        assert str(refused.out) in result.err[0]
        assert not list(refused.out.iterdir())
    finally:
        if is_root:
            subprocess.run(["umount", "--lazy", refused.out], check=True)


def test_a_reason_to_stop_before_the_first_case_runs_none(tmp_path: Path) -> None:
    suite = read_suite(str(command_for(tmp_path, suite_text('name = "silent"')).suite))
    with Store.create(tmp_path / "out", suite) as store, InlineExecutor(Setting()) as executor:
        run_cases(store.plan(cases_of(suite)), store, executor=executor, should_stop=lambda: True)
        assert store.finished() == set()


def test_a_termination_that_python_discards_comes_again() -> None:
    code = """
import gc, os, signal, time
import click
from bench_mtl import cli

def strike(phase, info):
    gc.callbacks.remove(strike)
    os.kill(os.getpid(), signal.SIGTERM)
    sum(range(9))

def endless():
    gc.callbacks.append(strike)
    gc.collect()
    print("still running", flush=True)
    time.sleep(60)

cli.cli = click.command()(endless)
cli.main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (result.returncode, result.stdout, result.stderr.strip()) == (130, "still running\n", "bench-mtl: interrupted")
