"""The commands of docs/cluster.md, as they stand there, on this machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from ports import answers_http, listening
from runs import PLUGINS, TOKEN, Command, await_that, command_for, comparable, run_suite, solver, suite_text, with_variable

import bench_mtl
from bench_mtl.engine.suite_file import read_suite

pytest.importorskip("distributed", reason="Dask is not installed")

ROOT = Path(bench_mtl.__file__).parents[1]


def documented() -> list[str]:
    """The lines that start a cluster."""
    text = (ROOT / "docs" / "cluster.md").read_text()
    section = text.partition("## With workers of your own")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


#: What stands for the programs, and how a line waits until the scheduler listens: a worker looks for it, a command does not.
PREAMBLE = f"""
set -e
trap 'kill $(jobs -p); wait' EXIT
bench-mtl() {{ {sys.executable} -m bench_mtl "$@"; }}
dask() {{ exec {sys.executable} -m dask "$@"; }}
"""
WAIT = "until (echo > /dev/tcp/127.0.0.1/%d) 2> /dev/null; do sleep 0.1; done"


def script(command: Command, port: int) -> str:
    """The documented lines for this machine, servers in the background."""
    *lines, run = [
        line.replace("10.0.0.1:8786", f"127.0.0.1:{port}").replace("10.0.0.1 --port 8786", f"127.0.0.1 --port {port}")
        for line in documented()
    ]
    assert [line.split()[:2] for line in lines[-2:]] == [["dask", "scheduler"], ["dask", "worker"]]
    assert run.startswith("bench-mtl run synthetic ")
    *lines, scheduler, worker = lines
    words = shlex.join(["bench-mtl", "run", str(command.suite), "--out", str(command.out), "--plugins", str(PLUGINS)])
    return "\n".join([PREAMBLE, *lines, f"{scheduler} &", WAIT % port, f"{worker} &", run.replace("bench-mtl run synthetic", words)])


TEXT = suite_text(
    'name = "projected_gradient"', 'name = "accelerated_gradient"', 'name = "silent"', solver("faulty", "fault", "none"),
    limits="seconds = 20.0, iterations = 30",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no OpenSSL")
def test_the_documented_commands_run_a_suite(tmp_path: Path) -> None:
    command = command_for(tmp_path / "cluster", TEXT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), TOKEN: command.token}
    words = ["bash", "-c", script(command, free_port())]

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
