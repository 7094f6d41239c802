"""Runs on a Dask cluster: the rows of a local run, once each, whatever dies."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from false_answers import nonsense
from ports import answers_http, listening
from runs import (
    PLUGINS,
    TINY,
    TOKEN,
    Command,
    await_line,
    await_that,
    cases_of,
    command_for,
    comparable,
    details,
    require_sound,
    run_suite,
    running_cases,
    runs_in,
    solver,
    suite_of,
    suite_text,
    with_variable,
)
from shared_cluster import SharedCluster, certificates_of

import bench_mtl
from bench_mtl.core import running_code
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.results import Outcome, Store
from bench_mtl.runner import Setting

if TYPE_CHECKING:
    from bench_mtl.runner.cluster import ClusterExecutor

pytest.importorskip("distributed", reason="Dask is not installed")

BEHAVED = (
    'name = "projected_gradient"',
    'name = "liar"',
    'name = "silent"',
    solver("faulty", "fault", "raises", "none", "aborts"),
)


def test_a_cluster_gives_the_rows_of_a_local_run(tmp_path: Path, cluster: SharedCluster) -> None:
    from bench_mtl.runner.cluster import ClusterExecutor

    suite = suite_of(
        *BEHAVED, limits="seconds = 60.0, iterations = 30", problems=TINY.replace('"box"', '"measured"').replace("bound = 0.5", "")
    )
    sentences: list[str] = []
    with ClusterExecutor.at(Setting(1, PLUGINS), cluster.address) as executor:
        assert executor.capacity == 2
        executor.notify = sentences.append
        assert executor.find_mistake(cases_of(suite)) is None
        run_suite(tmp_path / "cluster", suite, executor=nullcontext(executor))
    assert sentences == []
    one, other = tmp_path / "cluster", tmp_path / "local"
    run_suite(other, suite)
    runs, samples = without_output(one)
    assert {run["status"] for run in runs} >= {"verified", "wrong", "error", "crashed"}
    assert len(samples) > 10
    assert (runs, samples) == without_output(other)
    rows = details(one)
    assert {table for table, entries in rows.items() if entries} >= {"proof", "place", "pattern", "measure"}
    assert rows == details(other)
    assert environments(one) == environments(other)


def environments(folder: Path) -> list[dict[str, Any]]:
    """What rows say of the machine and of what was installed."""
    with Store.open(folder) as store:
        found = store.environments()
    return sorted(({key: value for key, value in each.items() if key != "started"} for each in found), key=str)


def without_output(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and samples but for what was printed, which names threads by their addresses."""
    runs, samples = comparable(folder)
    for run in runs:
        run["info"].pop("output", None)
    return runs, samples


def test_a_command_on_a_local_cluster_listens_here_alone_and_stops_in_order(tmp_path: Path) -> None:
    """An interrupt reaches all processes of a terminal."""
    numbers = range(40)
    solvers = ('name = "projected_gradient"', solver("waits", "number", *numbers))
    command = command_for(tmp_path, suite_text(*solvers, limits="seconds = 60.0, iterations = 20"))
    with command.start("--cluster", "local", before=os.setsid) as process, killed_at_last(process.pid):
        await_line(process, "[2/41]")
        names: dict[psutil.Process, str] = {}
        for pid in with_variable(TOKEN, command.token):
            with suppress(psutil.NoSuchProcess):  # of a case that has just ended
                names[psutil.Process(pid)] = psutil.Process(pid).name()
        assert set(names.values()) >= {"bench_template", "bench_worker", "bench_certifier"}
        addresses = listening(names)
        assert {host for host, _ in addresses} == {"127.0.0.1"}
        assert not [address for address in addresses if answers_http(address)]
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - began < 10.0  # for as long it would wait for a cluster that does not close
    assert process.returncode == 130, stderr
    first, second = stderr.splitlines()
    assert first.startswith("bench-mtl: stopping after the running cases")
    assert second.startswith("bench-mtl: interrupted; what has finished is stored")
    assert command.leaves_nothing()
    runs = runs_in(command.out)
    assert runs["solver_label"].tolist() == ["projected_gradient", *(f"waits_{number}" for number in numbers)][: len(runs)]
    assert 1 < len(runs) < 41
    assert set(runs["status"][1:]) == {"inaccurate"}


@contextmanager
def killed_at_last(group: int) -> Iterator[None]:
    """End all processes of a terminal."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


@pytest.mark.slow
def test_a_case_whose_dask_workers_all_die_is_a_row() -> None:
    from bench_mtl.runner.cluster import ClusterExecutor

    (case,) = cases_of(suite_of(solver("waits", "number", 1), limits="seconds = 60.0, iterations = 40"))  # two seconds
    with ClusterExecutor.local(Setting(1, PLUGINS), 1) as executor:

        def next_worker(before: int) -> int:
            found: list[int] = []

            def is_new() -> bool:
                found[:] = [nanny.pid for nanny in executor._cluster.workers.values() if nanny.pid not in (None, before)]
                return bool(found and executor._client.nthreads())

            assert await_that(is_new, 60.0)
            return found[0]

        def runs_something(pid: int) -> bool:
            return bool(psutil.Process(pid).children(recursive=True))

        outcome, pid = executor.submit(case), 0
        for _ in range(2):
            pid = next_worker(pid)
            assert await_that(partial(runs_something, pid), 60.0)
            os.kill(pid, signal.SIGKILL)
        record = outcome.result(timeout=90.0).record
        assert (record.status, record.reason) == ("crashed", "the Dask worker that ran it died, each time that it was tried")


@pytest.mark.slow
def test_a_cluster_that_goes_away_ends_in_a_line_and_can_be_gone_on_from(tmp_path: Path) -> None:
    text = suite_text('name = "silent"', solver("waits", "number", 1), limits="seconds = 60.0, iterations = 40")
    command = command_for(tmp_path, text)
    file = tmp_path / "address.json"
    with (
        served(command, "scheduler", file, "--port", "0") as scheduler,
        served(command, "worker", file, "--nthreads", "1", "--no-nanny"),
    ):
        address = address_in(file)
        with command.start("--cluster", address) as process:
            await_line(process, "[1/2]")
            scheduler.kill()
            _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    warning, error = stderr.splitlines()
    assert warning == (
        f"bench-mtl: {address} is neither encrypted nor protected: anyone who reaches it can run code on the cluster and in this command; "
        "tls:// addresses are both"
    )
    assert "the cluster is gone" in error
    assert "the same command goes on from there" in error
    assert command.leaves_nothing()
    assert list(runs_in(command.out)["solver_label"]) == ["silent"]
    assert command.run().returncode == 1
    require_sound(command.out, cases_of(read_suite(str(command.suite)), traced=False))
    assert runs_in(command.out)["iterations"].tolist()[1:] == [40]


@pytest.mark.slow
def test_a_command_that_ends_leaves_the_cases_of_another_alone(tmp_path: Path) -> None:
    from distributed import Client

    from bench_mtl.runner.cluster import ClusterExecutor

    limits = "seconds = 60.0, iterations = 40"  # two seconds
    (long, short) = cases_of(suite_of(solver("waits", "number", 1), 'name = "projected_gradient"', limits=limits))
    command, file = command_for(tmp_path, ""), tmp_path / "address.json"
    with served(command, "scheduler", file, "--port", "0"), served(command, "worker", file, "--nthreads", "2", "--no-nanny") as worker:
        with Client(address_in(file), set_as_default=False) as client:
            assert await_that(lambda: len(client.nthreads()) == 1, 60.0)
        with ClusterExecutor.at(Setting(1, PLUGINS), address_in(file)) as one:
            running = one.submit(long)
            assert await_that(lambda: running_cases(worker.pid), 60.0)
            with ClusterExecutor.at(Setting(1, PLUGINS), address_in(file)) as other:
                assert other.submit(short).result(timeout=60.0).record.status == "verified"
            assert not running.done()
            record = running.result(timeout=60.0).record
            assert (record.status, record.samples[-1].step) == ("inaccurate", 40), record.reason


def test_a_scheduler_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_mtl.runner import cluster

    command = command_for(tmp_path, suite_text('name = "silent"'))
    file = tmp_path / "address.json"
    with served(command, "scheduler", file, "--port", "0") as scheduler:
        with cluster.ClusterExecutor.at(Setting(1, PLUGINS), address_in(file)) as executor:
            assert executor.capacity == 1
            monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1.0)
            monkeypatch.setattr(cluster, "_COUNT_SECONDS", 0.0)
            scheduler.send_signal(signal.SIGSTOP)
            waking = Timer(30.0, scheduler.send_signal, [signal.SIGCONT])  # who waits for it is to fail, not to hang
            waking.start()
            began = time.monotonic()
            with pytest.raises(IncompleteError, match="no answer within 1 s"):
                _ = executor.capacity
            assert time.monotonic() - began < 8.0
        waking.cancel()
        assert time.monotonic() - began < 20.0


def test_a_cluster_takes_in_who_holds_its_key_and_has_its_code(
    tmp_path: Path, cluster: SharedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    from distributed import Security

    from bench_mtl.runner.cluster import ClusterExecutor

    assert cluster.address.startswith("tls://")
    with dask.config.set(dict.fromkeys(cluster.settings)), pytest.raises(InputError, match="needs certificates"):
        ClusterExecutor.at(Setting(1, PLUGINS), cluster.address)
    others = certificates_of(Security.temporary(), tmp_path / "others")
    with dask.config.set(others), pytest.raises(InputError, match="no Dask scheduler answers at"):
        ClusterExecutor.at(Setting(1, PLUGINS), cluster.address)
    monkeypatch.setitem(running_code._loaded, "bench_mtl", "0" * 16)
    other_code = r"^--cluster: Dask worker tls://\S+ has other code of bench_mtl than this command \(\w{16} instead of"
    with pytest.raises(InputError, match=other_code):
        ClusterExecutor.at(Setting(1, PLUGINS), cluster.address)


def test_of_what_is_no_answer_there_comes_no_row_and_no_code_runs_here(tmp_path: Path, cluster: SharedCluster) -> None:
    from bench_mtl.runner.cluster import ClusterExecutor

    (case,) = cases_of(suite_of('name = "silent"'))
    deed = tmp_path / "deed"
    with ClusterExecutor.at(Setting(1, PLUGINS), cluster.address) as executor:
        for kind in ("bytes", "number", "deed", "dictionary", "list"):
            with pytest.raises(IncompleteError, match="the answer of a Dask worker cannot be used"):
                settled(executor, executor._client.submit(nonsense, kind, deed, os.getpid(), pure=False))
        assert not deed.exists()
        with pytest.raises(IncompleteError, match="cannot be used"):
            settled(executor, executor._client.submit(divmod, 1, 0))
        executor._code = {**executor._code, "bench_mtl": "0" * 16}
        with pytest.raises(IncompleteError, match=r"Dask worker tls://\S+ has other code of bench_mtl .*; what has finished is stored"):
            executor.submit(case).result(timeout=60.0)


def settled(executor: ClusterExecutor, task: Any) -> Outcome:
    """What the executor makes of a task."""
    outcome: Future[Outcome] = Future()
    task.add_done_callback(lambda task: executor._settle(outcome, task))
    return outcome.result(timeout=60.0)


def address_in(file: Path) -> str:
    """The address in a scheduler's file, once that is written in whole: it is there before."""
    assert await_that(lambda: file.exists() and file.read_text().rstrip().endswith("}"), 60.0)
    return str(json.loads(file.read_text())["address"])


@contextmanager
def served(command: Command, what: str, file: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler or a worker of Dask in a process of its own."""
    place = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    whole = [sys.executable, "-m", "dask", what, *place, *arguments]
    environment, null = {**os.environ, TOKEN: command.token}, subprocess.DEVNULL
    with subprocess.Popen(whole, env=environment, cwd=command.suite.parent, stdout=null, stderr=null) as process:
        try:
            yield process
        finally:
            process.kill()


ROOT = Path(bench_mtl.__file__).parents[1]

#: What stands for the programs, and how a line waits until the scheduler listens: a worker looks for it, a command does not.
PREAMBLE = f"""
set -e
trap 'kill $(jobs -p); wait' EXIT
bench-mtl() {{ {sys.executable} -m bench_mtl "$@"; }}
dask() {{ exec {sys.executable} -m dask "$@"; }}
"""
WAIT = "until (echo > /dev/tcp/127.0.0.1/%d) 2> /dev/null; do sleep 0.1; done"


def documented(command: Command, port: int) -> str:
    """The lines of docs/cluster.md that start a cluster, for this machine, servers in the background."""
    section = (ROOT / "docs" / "cluster.md").read_text().partition("## With workers of your own")[2].partition("\n## ")[0]
    text = "".join(re.findall(r"```\n(.*?)```", section, re.DOTALL))
    text = text.replace("10.0.0.1:8786", f"127.0.0.1:{port}").replace("10.0.0.1 --port 8786", f"127.0.0.1 --port {port}")
    *lines, scheduler, worker, run = text.splitlines()
    assert (scheduler.split()[:2], worker.split()[:2]) == (["dask", "scheduler"], ["dask", "worker"])
    assert run.startswith("bench-mtl run synthetic ")
    words = shlex.join(["bench-mtl", "run", str(command.suite), "--out", str(command.out), "--plugins", str(PLUGINS)])
    return "\n".join([PREAMBLE, *lines, f"{scheduler} &", WAIT % port, f"{worker} &", run.replace("bench-mtl run synthetic", words)])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no OpenSSL")
def test_the_documented_commands_run_a_suite(tmp_path: Path) -> None:
    solvers = ('name = "projected_gradient"', 'name = "accelerated_gradient"', 'name = "silent"', solver("faulty", "fault", "none"))
    command = command_for(tmp_path / "cluster", suite_text(*solvers, limits="seconds = 20.0, iterations = 30"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), TOKEN: command.token}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        words = ["bash", "-c", documented(command, int(free.getsockname()[1]))]

    def addresses() -> list[tuple[str, int]]:
        pids = with_variable(TOKEN, command.token)
        return listening(each for each in psutil.process_iter() if each.pid in pids)

    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=command.suite.parent
    ) as process:
        assert await_that(lambda: len({port for _, port in addresses()}) >= 3, 30.0)  # of scheduler, worker and nanny
        assert not [address for address in addresses() if answers_http(address)]  # which knows no key
        stderr = process.communicate(timeout=120)[1]
    assert process.returncode == 1, stderr  # of the solver that is silent
    assert "1 of 4 runs failed (wrong, crashed or error); the report says why" in stderr.splitlines()
    run_suite(tmp_path / "local", read_suite(str(command.suite)), traced=False)
    assert comparable(command.out) == comparable(tmp_path / "local")
    assert command.leaves_nothing()
