"""A cluster of our own answers to nobody but those who hold its key."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from ports import listening
from shared_cluster import SharedCluster

from bench_mtl.core.dask_cluster import client_at, client_of, close_local, exposure, local_cluster
from bench_mtl.core.errors import InputError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

#: Asks every port who it is and to run a function, in plain text and with the certificates of another cluster, and for a page of HTTP.
INTRUDER = """
import asyncio, os, sys, urllib.request
import distributed
from distributed.protocol.pickle import dumps

def run_here(file):
    open(file, "w").close()

async def ask(address, connection, file, found):
    async with distributed.rpc(address, connection_args=connection) as server:
        await server.identity()
        found.append(f"ANSWERED {address}")
        await server.run(function=dumps(run_here), args=dumps((file,)), kwargs=dumps({}))

async def found_at(port):
    found = []
    seconds = 20.0 if port == ports[-1] else 2.0  # the last one answers, however busy the machine is
    for scheme, connection in ways.items():
        try:
            await asyncio.wait_for(ask(f"{scheme}://127.0.0.1:{port}", connection, f"{folder}/{port}", found), seconds)
        except Exception as error:
            found.append(f"refused {scheme} {type(error).__name__}")
    try:
        await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{port}/health", timeout=2.0)
    except Exception as error:
        found.append(f"refused http {type(error).__name__}")
    else:
        found.append("ANSWERED http")
    return found

async def main():
    for found in await asyncio.gather(*map(found_at, ports)):
        print("\\n".join(found))

folder, *ports = sys.argv[1:]
securities = {"tcp": distributed.Security(), "tls": distributed.Security.temporary()}
ways = {scheme: security.get_connection_args("client") for scheme, security in securities.items()}
asyncio.run(main())
"""


def open_cluster() -> Any:
    """A cluster without workers that takes everybody in."""
    return distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}
    )


def test_every_port_of_a_local_cluster_refuses_strangers(cluster: SharedCluster, tmp_path: Path) -> None:
    assert cluster.client.submit(sum, [1, 2]).result(timeout=60) == 3
    addresses = listening([psutil.Process(), *cluster.processes])
    ports = {cluster.cluster.scheduler.port, *(nanny.port for nanny in cluster.cluster.workers.values())}
    assert ports < {port for _, port in addresses}  # and the workers'
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    with open_cluster() as other:
        answers = intrude(tmp_path, [*(port for _, port in addresses), other.scheduler.port])
        asked, in_the_open = answers[: 3 * len(addresses)], answers[3 * len(addresses) :]
        assert in_the_open[0] == f"ANSWERED tcp://127.0.0.1:{other.scheduler.port}"  # it can ask
    assert not [line for line in asked if not line.startswith("refused")]
    assert not list(tmp_path.iterdir())
    assert cluster.client.submit(sum, [3, 4]).result(timeout=60) == 7  # who asks does no harm


def intrude(folder: Path, ports: list[int]) -> list[str]:
    """Return what the intruder prints; where a server has run its function there is a file that is named for its port."""
    command = [sys.executable, "-c", INTRUDER, str(folder), *map(str, ports)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout.splitlines()


def test_its_key_is_in_no_argument_no_variable_and_no_file(cluster: SharedCluster) -> None:
    key = cluster.cluster.security.tls_worker_key
    assert key.startswith("-----BEGIN PRIVATE KEY-----")
    secret = key.splitlines()[1]
    for process in cluster.processes:
        assert secret not in " ".join([*process.cmdline(), *process.environ().values()])
    assert [file for file in cluster.folder.rglob("*") if file.is_file() and secret in file.read_text(errors="replace")] == []
    assert cluster.cluster.scheduler.security.require_encryption


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the children of a process so")
def test_a_worker_that_hangs_is_killed_and_no_other_is_started() -> None:
    def workers() -> set[int]:
        found = set()
        for child in psutil.Process().children():
            with suppress(psutil.Error):  # one that ends while it is looked at
                if any("spawn_main" in word for word in child.cmdline()):
                    found.add(child.pid)
        return found

    before = workers()
    cluster = local_cluster("test", 1, 1)
    client = client_of(cluster)
    (pid,) = {nanny.pid for nanny in cluster.workers.values()}
    psutil.Process(pid).suspend()
    client.close(timeout=0.2)
    close_local(cluster, 0.2)
    deadline, seen = time.monotonic() + 1.0, set()  # Dask would start another one at once
    while time.monotonic() < deadline or (psutil.pid_exists(pid) and time.monotonic() < deadline + 10.0):  # Dask waits for its end
        seen |= workers() - before
        time.sleep(0.02)
    assert not psutil.pid_exists(pid)
    assert seen <= {pid}
    assert workers() <= before


def test_a_local_cluster_without_what_makes_keys_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"^--cluster needs the package cryptography: pip install '\.\[cluster\]'$"):
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
