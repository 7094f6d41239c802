"""The commands of docs/cluster.md, as they stand there, on this machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from ports import answers_http, listening
from runs import PLUGINS, TOKEN, Command, await_that, command_for, comparable, run_suite, solver, suite_text

import bench_mtl
from bench_mtl.engine.suite_file import read_suite

pytest.importorskip("distributed", reason="Dask is not installed")

ROOT = Path(bench_mtl.__file__).parents[1]
#: How programs are started here, whatever is installed.
PROGRAMS = {"bench-mtl": [sys.executable, "-m", "bench_mtl"], "dask": [sys.executable, "-m", "dask"]}


def documented() -> list[str]:
    """The lines that start a cluster."""
    text = (ROOT / "docs" / "cluster.md").read_text()
    section = text.partition("## With workers of your own")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Shell:
    """Runs lines as a user types them, those of servers in the background."""

    def __init__(self, command: Command, stack: ExitStack, port: int) -> None:
        self.command, self.stack, self.port = command, stack, port
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), TOKEN: command.token}
        self.servers: list[psutil.Process] = []

    @property
    def folder(self) -> Path:
        return self.command.suite.parent

    def do(self, line: str) -> subprocess.CompletedProcess[str] | None:
        line = line.replace("10.0.0.1:8786", f"127.0.0.1:{self.port}").replace("10.0.0.1 --port 8786", f"127.0.0.1 --port {self.port}")
        assert "10.0.0.1" not in line
        word, *words = shlex.split(line.replace("$PWD", str(self.folder)))
        if word == "export":
            self.environment |= dict(each.split("=", 1) for each in words)
            return None
        if word == "dask":
            self._serve([*PROGRAMS[word], *words])
            return None
        if words[0] == "run":
            assert words[1] == "synthetic"
            words[1:2] = [str(self.command.suite), "--out", str(self.command.out), "--plugins", str(PLUGINS)]
        whole = [*PROGRAMS.get(word, [word]), *words]
        return subprocess.run(whole, capture_output=True, text=True, timeout=120, check=False, env=self.environment, cwd=self.folder)

    def _serve(self, words: list[str]) -> None:
        process = self.stack.enter_context(background(words, self.environment, self.folder))
        self.servers.append(psutil.Process(process.pid))

    def listening(self) -> list[tuple[str, int]]:
        """The addresses at which its servers take connections."""
        return listening(each for server in self.servers for each in (server, *server.children(recursive=True)))


@contextmanager
def background(words: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, env=dict(environment), cwd=folder, **quiet) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            for each in (*psutil.Process(process.pid).children(recursive=True), process):
                each.kill()


TEXT = suite_text(
    'name = "projected_gradient"', 'name = "accelerated_gradient"', 'name = "silent"', solver("faulty", "fault", "none"),
    limits="seconds = 20.0, iterations = 30",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no OpenSSL")
def test_the_documented_commands_run_a_suite(tmp_path: Path) -> None:
    command = command_for(tmp_path / "cluster", TEXT)
    *lines, run = documented()
    assert [line.split()[:2] for line in lines[-2:]] == [["dask", "scheduler"], ["dask", "worker"]]
    with ExitStack() as stack:
        shell = Shell(command, stack, free_port())
        for line in lines:
            done = shell.do(line)
            assert done is None or done.returncode == 0, done.stderr
            # A worker looks for its scheduler, but a command does not wait for one.
            assert not line.startswith("dask scheduler") or await_that(lambda: ("127.0.0.1", shell.port) in shell.listening(), 30.0)
        assert await_that(lambda: len({port for _, port in shell.listening()}) >= 3, 30.0)  # of scheduler, worker and nanny
        done = shell.do(run)
        assert done is not None
        assert done.returncode == 1  # of the solver that is silent
        assert done.stderr == "1 of 4 runs failed (wrong, crashed or error); the report says why\n"
        assert not [address for address in shell.listening() if answers_http(address)]  # which knows no key
    run_suite(tmp_path / "local", read_suite(str(command.suite)), traced=False)
    assert comparable(command.out) == comparable(tmp_path / "local")
    assert command.leaves_nothing()
