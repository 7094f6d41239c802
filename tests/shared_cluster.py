"""One Dask cluster for all tests of a process that do not break it: two workers, which only those find who hold its key."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench_mtl.core.dask_blocks import Place, Workers
from bench_mtl.core.dask_cluster import answer, client_of, close_local, distributed_module, local_cluster

#: It stays for as long as all tests take, so that nothing should look every few milliseconds at what it does.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1h",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "1h",
}


@dataclass(frozen=True)
class SharedCluster:
    """A cluster, and what tests ask of it."""

    cluster: Any
    client: Any
    """The default one of no test: see its `as_current`."""
    pids: tuple[int, ...]
    """Of its workers, in the order of their addresses."""
    processes: tuple[psutil.Process, ...]
    """Those that it has started."""
    folder: Path
    """Where its temporary files are."""
    settings: dict[str, str]
    """Of Dask: with them its address is enough to find it."""

    @property
    def address(self) -> str:
        return str(self.cluster.scheduler_address)

    def computing(self) -> Workers:
        """Return its workers for data in blocks."""
        return Workers(Place(self.address))

    def has_its_workers(self) -> bool:
        """Return whether they are those of the beginning, and answer."""
        return answer(lambda: pids_of(self.client), 60.0) == self.pids


def pids_of(client: Any) -> tuple[int, ...]:
    """Return the processes of the workers of a client, in the order of their addresses."""
    return tuple(pid for _, pid in sorted(client.run(os.getpid).items()))


@contextmanager
def started(folder: Path) -> Iterator[SharedCluster]:
    """Yield a cluster with its temporary files in a folder."""
    import dask
    import distributed  # noqa: F401 - so that its own settings outlive ours

    before = set(psutil.Process().children(recursive=True))
    with pytest.MonkeyPatch.context() as patch, dask.config.set(QUIET):
        patch.setattr(tempfile, "tempdir", str(folder / "temporary"))
        patch.setenv("TMPDIR", str(folder / "temporary"))
        (folder / "temporary").mkdir()
        cluster = local_cluster("tests", 2, 3)
    processes = tuple(sorted(set(psutil.Process().children(recursive=True)) - before, key=lambda process: process.pid))
    client = client_of(cluster)
    try:
        settings = certificates_of(cluster.security, folder / "certificates")
        yield SharedCluster(cluster, client, pids_of(client), processes, folder / "temporary", settings)
    finally:
        client.close()
        close_local(cluster, 10.0)


@contextmanager
def inside() -> Iterator[tuple[Any, Any]]:
    """Yield a cluster of one worker inside this process, which is there at once, and a client of it."""
    distributed = distributed_module("tests")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster, client_of(cluster) as client:  # fmt: skip
        yield cluster, client


def certificates_of(security: Any, folder: Path) -> dict[str, str]:
    """Write the certificates of a cluster into a new folder; return the settings of Dask by which all roles use them."""
    folder.mkdir(mode=0o700)
    texts = {"ca-file": security.tls_ca_file}
    for role in ("client", "scheduler", "worker"):
        texts |= {f"{role}.cert": getattr(security, f"tls_{role}_cert"), f"{role}.key": getattr(security, f"tls_{role}_key")}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {f"distributed.comm.tls.{name}": str(folder / name) for name in texts}
