"""Whoever is killed, whenever: each case has one row, true to what happened, and the same command goes on."""

import contextlib
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from runs import (
    PLUGINS,
    TOKEN,
    Executing,
    await_line,
    await_that,
    cases_of,
    command_for,
    comparable,
    go_on,
    require_sound,
    run_suite,
    running_cases,
    runs_in,
    solver,
    suite_of,
    suite_text,
    with_variable,
)

from bench_mtl.engine.suite import Case
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.runner import LocalExecutor, Setting, run_cases

STEPS = 12
PAUSE = 0.1  # seconds before each step: enough of them to be killed in


def test_a_worker_that_is_killed_in_a_case_costs_that_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First with all processes, that from which others are forked among them; then the process of the case alone."""
    token = f"{os.getpid()} aims"
    monkeypatch.setenv(TOKEN, token)
    suite = suite_of(solver("waits", "number", 0, 1, 2, pause=PAUSE), limits=f"seconds = 60.0, iterations = {STEPS}")
    cases = cases_of(suite)
    threads: list[threading.Thread] = []

    def kill(number: int) -> None:
        await_that(running_cases)
        for pid in with_variable(TOKEN, token) if number == 0 else running_cases():
            if pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def start(case: Case) -> None:
        if len(threads) < 2:
            threads.append(threading.Thread(target=kill, args=(len(threads),)))
            threads[-1].start()

    with Store.create(tmp_path, suite) as store, LocalExecutor(Setting(1, PLUGINS)) as executor:
        run_cases(store.plan(cases), store, executor=executor, on_start=start, on_outcome=lambda *_: threads[-1].join())
        runs = store.runs()
        samples = store.samples().groupby("run_id")["iteration"].apply(list)
    require_sound(tmp_path, cases)
    assert runs["status"].tolist() == ["crashed", "crashed", "inaccurate"]
    assert runs["reason"].iloc[:2].tolist() == ["the solver's process died: signal 9 (SIGKILL)"] * 2
    assert runs["iterations"].iloc[2] == STEPS
    for number, last in zip(runs["id"], (False, False, True), strict=True):  # what was yielded before is kept
        steps = samples.get(number, [])
        assert steps == list(range(STEPS + 1 if last else len(steps)))


def test_a_killed_run_is_gone_on_with_to_the_same_results(tmp_path: Path, shared: Executing) -> None:
    text = suite_text(
        'name = "projected_gradient"',
        solver("waits", "number", 0, 1, pause=0.02),
        solver("faulty", "fault", "raises", "nan"),
        'name = "accelerated_gradient"',
        limits=f"seconds = 60.0, iterations = {STEPS}",
    )
    command = command_for(tmp_path / "killed", text)
    run_suite(tmp_path / "undisturbed", read_suite(str(command.suite)), executor=shared, traced=False)
    with command.start() as process:
        await_line(process, "[2/6]")
        process.kill()
        process.communicate()
    assert process.returncode == -9
    assert command.leaves_nothing()
    with Store.open(command.out) as store:
        rows = len(store.finished())
    # Without the report, which takes longer than all the rest.
    assert len(go_on(command.out, read_suite(str(command.suite)), shared, traced=False)) == 6 - rows
    require_sound(command.out, cases_of(read_suite(str(command.suite)), traced=False))
    assert comparable(command.out) == comparable(tmp_path / "undisturbed")


@pytest.mark.slow
def test_a_case_that_kills_the_command_is_run_last_and_becomes_a_row(tmp_path: Path) -> None:
    deadly = solver("faulty", "fault", "kills_itself")
    text = suite_text('name = "projected_gradient"', deadly, 'name = "accelerated_gradient"')
    command = command_for(tmp_path, text)
    counts = []
    for code in (-signal.SIGKILL, -signal.SIGKILL, 1, 1):
        assert command.run("--isolation", "inline").returncode == code
        with Store.open(command.out) as store:
            counts.append(len(store.finished()))
    assert counts == [1, 2, 3, 3]
    row = runs_in(command.out).loc["faulty_kills_itself"]
    assert (row["status"], row["reason"]) == ("crashed", "2 commands died while it ran")
    # Where solvers run in processes of their own it kills none but its own, and the command goes on.
    assert command.run("--retry-failed").returncode == 1
    assert "the solver's process died" in runs_in(command.out).loc["faulty_kills_itself", "reason"]


def test_what_is_interrupted_has_not_died(tmp_path: Path) -> None:
    suite = suite_of('name = "projected_gradient"', 'name = "accelerated_gradient"')
    cases, killed = cases_of(suite), tmp_path / "killed"
    killed.mkdir()
    folder = tmp_path / "interrupted"
    with Store.create(folder, suite) as store:
        store.begin(cases[0].key)
        assert store.deaths() == {}
    with Store.create(folder, suite) as store:
        assert store.deaths() == {}
        store.begin(cases[0].key)
        store.begin(cases[1].key)
        for ending in ("", "-wal"):
            shutil.copy(f"{folder / FILE_NAME}{ending}", killed)
    with Store.create(killed, suite) as store:
        assert store.deaths() == {case.key: 1 for case in cases}
