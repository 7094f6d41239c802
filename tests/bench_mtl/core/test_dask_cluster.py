"""A cluster of our own answers to nobody but those who hold its key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest

from bench_mtl.core.dask_cluster import client_at, client_of, close_local, exposure, local_cluster
from bench_mtl.core.errors import InputError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

#: The user with the fewest rights.
NOBODY = 65534

#: Asks every port who it is and to run a function, in plain text and with the certificates of another cluster, and for a page of HTTP.
INTRUDER = """
import asyncio, os, sys, urllib.request
import distributed
from distributed.protocol.pickle import dumps

def run_here(file):
    open(file, "w").close()

async def ask(address, connection):
    async with distributed.rpc(address, connection_args=connection) as server:
        await server.identity()
        print("ANSWERED", address)
        await server.run(function=dumps(run_here), args=dumps((file,)), kwargs=dumps({}))

async def main():
    for port in ports:
        for scheme, connection in ways.items():
            try:
                await asyncio.wait_for(ask(f"{scheme}://127.0.0.1:{port}", connection), 2.0)
            except Exception as error:
                print("refused", scheme, type(error).__name__)
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2.0)
        except Exception as error:
            print("refused", "http", type(error).__name__)
        else:
            print("ANSWERED http")

user, file, *ports = sys.argv[1:]
securities = {"tcp": distributed.Security(), "tls": distributed.Security.temporary()}
ways = {scheme: security.get_connection_args("client") for scheme, security in securities.items()}
if user:
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
asyncio.run(main())
"""


class Running(NamedTuple):
    cluster: Any
    client: Any
    others: list[psutil.Process]
    """The processes that it has started."""
    folder: Path
    """For temporary files."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A cluster of one worker."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("TMPDIR", str(folder))
        before = set(psutil.Process().children(recursive=True))
        cluster = local_cluster("test", 1, 1)
        client = client_of(cluster)
        yield Running(cluster, client, sorted(set(psutil.Process().children(recursive=True)) - before, key=lambda p: p.pid), folder)
        client.close()
        close_local(cluster, 10.0)


def listening(processes: list[psutil.Process]) -> list[Any]:
    """The addresses that TCP connections are taken at."""
    return [each.laddr for process in processes for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]


def test_every_port_of_a_local_cluster_refuses_strangers(running: Running, tmp_path: Path) -> None:
    assert running.client.submit(sum, [1, 2]).result(timeout=20) == 3
    addresses = listening([psutil.Process(), *running.others])
    ports = {running.cluster.scheduler.port, *(nanny.port for nanny in running.cluster.workers.values())}
    assert ports < {address.port for address in addresses}  # and the worker's
    assert {address.ip for address in addresses} == {"127.0.0.1"}
    file = tmp_path / "intruded"
    found = intrude(file, [address.port for address in addresses])
    assert len(found) == 3 * len(addresses)
    assert not [line for line in found if not line.startswith("refused")]
    assert not file.exists()
    assert running.client.submit(sum, [3, 4]).result(timeout=20) == 7  # who asks does no harm


@pytest.mark.skipif(not hasattr(os, "setgroups") or os.getuid() != 0, reason="only root can become another user")
def test_so_it_does_for_another_user_of_the_machine(running: Running) -> None:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp://", dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}
        ) as open_one,
    ):
        os.chmod(folder, 0o777)  # so that the deed itself would not fail
        found = intrude(Path(folder) / "intruded", [running.cluster.scheduler.port, open_one.scheduler.port], NOBODY)
        assert [line.split()[0] for line in found[:3]] == ["refused"] * 3
        assert found[3] == f"ANSWERED tcp://127.0.0.1:{open_one.scheduler.port}"  # it can ask
        assert os.listdir(folder) == []


def intrude(file: Path, ports: list[int], user: int | None = None) -> list[str]:
    """What the intruder prints."""
    command = [sys.executable, "-c", INTRUDER, "" if user is None else str(user), str(file), *map(str, ports)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def test_its_key_is_in_no_argument_no_variable_and_no_file(running: Running) -> None:
    key = running.cluster.security.tls_worker_key
    assert key.startswith("-----BEGIN PRIVATE KEY-----")
    secret = key.splitlines()[1]
    for process in running.others:
        assert secret not in " ".join([*process.cmdline(), *process.environ().values()])
    assert [file for file in running.folder.rglob("*") if file.is_file() and secret in file.read_text(errors="replace")] == []
    assert running.cluster.scheduler.security.require_encryption


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the children of a process so")
def test_a_worker_that_hangs_is_killed_and_no_other_is_started() -> None:
    def workers() -> set[int]:
        return {child.pid for child in psutil.Process().children() if any("spawn_main" in word for word in child.cmdline())}

    before = workers()
    cluster = local_cluster("test", 1, 1)
    client = client_of(cluster)
    (pid,) = {nanny.pid for nanny in cluster.workers.values()}
    psutil.Process(pid).suspend()
    client.close(timeout=1.0)
    close_local(cluster, 0.5)
    deadline, seen = time.monotonic() + 3.0, set()
    while time.monotonic() < deadline:
        with suppress(psutil.Error):  # one that ends while it is looked at
            seen |= workers() - before
        time.sleep(0.02)
    assert seen <= {pid}
    assert workers() <= before


@pytest.mark.parametrize("raises", [False, True])
def test_a_worker_is_killed_though_its_cluster_forgets_it(raises: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:
        nanny = SimpleNamespace(pid=worker.pid, status=distributed.Status.running)

        def forget() -> None:
            nanny.pid = None
            if raises:
                raise RuntimeError("its loop is closed")

        close_local(SimpleNamespace(workers={0: nanny}, close=forget), 5.0)
        assert worker.wait(timeout=10.0) == -signal.SIGKILL


def test_two_clusters_have_two_keys() -> None:
    security = distributed.Security
    assert security.temporary().tls_client_key != security.temporary().tls_client_key


def test_a_local_cluster_without_what_makes_keys_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"^--cluster needs the package cryptography: pip install 'bench-mtl\[cluster\]'$"):
        local_cluster("--cluster", 1, 1)


@pytest.mark.parametrize(
    ("address", "is_open"),
    [("tcp://host:1", True), ("host:1", True), ("ws://host:1", True), ("tls://host:1", False), ("wss://host:1", False)],
)
def test_it_is_said_of_an_address_that_is_open_to_everybody(address: str, is_open: bool) -> None:
    said = exposure(address)
    assert (said is not None) == is_open
    assert said is None or said.startswith(f"{address} is neither encrypted nor protected: anyone who reaches it can run code")


def test_certificates_that_are_missing_or_useless_are_named(tmp_path: Path) -> None:
    import dask

    with pytest.raises(InputError, match=r"^test: tls://127.0.0.1:1 needs certificates; name their files by DASK_DISTRIBUTED__COMM__TLS"):
        client_at("test", "tls://127.0.0.1:1", 1.0)
    file = tmp_path / "empty.pem"
    file.touch()
    for ca in (file, tmp_path / "none.pem"):
        given = {"distributed.comm.tls.ca-file": str(ca), "distributed.comm.tls.client.cert": str(file)}
        with (
            dask.config.set(given),
            pytest.raises(InputError, match=r"^test: the certificates that Dask is configured for cannot be used: .+") as raised,
        ):
            client_at("test", "tls://127.0.0.1:1", 1.0)
        assert "\n" not in str(raised.value)
