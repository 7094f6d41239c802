"""Dask clusters for whoever asks for one: its own on this machine, or one whose scheduler is elsewhere.

Whoever reaches a Dask process can run code in it, and in all that it is connected to. So a cluster of our own listens on the loopback
interface only, and to those alone who hold the key that was made for it; the key is never in a file that stays, in an argument or in the
environment. Elsewhere that is for those to arrange whose scheduler it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil

from bench_mtl.core.errors import IncompleteError, InputError

#: How long to look for a scheduler, and to wait for an answer from one.
CONNECT_SECONDS = 10.0
#: Addresses by which Dask finds a scheduler: of a host and port, or of one in the same process.
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ucxx|ws|wss)://)?(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s/:\[\]]+):(?P<port>\d{1,5})/?|inproc://\S+")
#: How addresses begin that both ends need certificates for.
_WITH_CERTIFICATES = ("tls://", "wss://")
#: How long Dask workers may take to say which code they have: the question makes them import it.
_IMPORT_SECONDS = 60.0
#: How long each request to a cluster may take once all is to stop now.
CLOSING_SECONDS = 2.0


#: Tells a worker of a local cluster how many bytes it may allocate.
_MEMORY_VARIABLE = "BENCH_MTL_WORKER_BYTES"
#: What the allocator of a worker may keep free, and from what size it asks for memory anew, in bytes. Most arrays of a block are smaller.
_KEPT_FREE = {"MALLOC_TRIM_THRESHOLD_": 2**25, "MALLOC_MMAP_THRESHOLD_": 2**24}
#: A worker from which nothing has been heard for so long is given up, and what it did is done by others.
_SILENCE = "30s"


class ClusterLostError(IncompleteError):
    """A Dask cluster that computes a part of a run is gone: no worker is left, or its scheduler does not answer."""


def distributed_module(asker: str) -> Any:
    """Dask's `distributed`, which keeps quiet. Raises InputError: Dask is not installed."""
    try:
        import distributed
    except ImportError:
        raise InputError(f"{asker} needs Dask: pip install '.[cluster]'") from None
    for name in list(logging.root.manager.loggerDict):  # some have a level of their own
        if name.split(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def local_cluster(asker: str, workers: int, allowed_deaths: int, memory_gib: float | None = None) -> Any:
    """Return a LocalCluster of processes with one thread each; a task is given up when more than the allowed number of them die with it.

    All connections are encrypted, and both ends have to show that they hold the key of this very cluster. Workers may allocate `memory_gib`
    each, files that they map into memory apart, and are ended and started anew where all of their memory together comes to as much. Raises
    InputError: Dask, or the package that makes its keys, is not installed.
    """
    distributed = distributed_module(asker)
    import dask

    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise InputError(f"{asker} needs the package cryptography: pip install '.[cluster]'") from None
    setting = {
        "distributed.scheduler.allowed-failures": allowed_deaths,
        # Pages of HTTP know no keys: there are none until `dask_setup` closes their ports.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.scheduler.worker-ttl": _SILENCE,
        # Nothing is worth keeping on a disk, and a worker that waits for memory waits for ever.
        **{f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")},
        # Dask has memory given back at once, and then every array of a block is made of new pages, which takes as long as computing it.
        **{f"distributed.nanny.pre-spawn-environ.{name}": str(size) for name, size in _KEPT_FREE.items()},
    }
    size = 0 if memory_gib is None else int(memory_gib * 2**30)
    with dask.config.set(setting):
        # The limits of cases are ours: Dask's see its own processes only.
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=size, env={_MEMORY_VARIABLE: str(size)},
            dashboard_address=None, silence_logs=logging.CRITICAL,
            # Any port: another cluster may have the usual one.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "preload": __name__},
            host="127.0.0.1", protocol="tls://", security=security, preload=__name__,
        )  # fmt: skip


def scheduler_address(asker: str, address: object) -> str:
    """`address` if it has the form of a scheduler's, such as tcp://host:8786 or host:8786; whether there is one is not asked.

    Raises InputError: it has not.
    """
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if match is None or not 0 < int(match["port"] or 1) < 2**16:
        raise InputError(asker, address, "local or the address of a Dask scheduler, such as tcp://host:8786")
    return str(address)


def client_at(
    asker: str, address: str, seconds: float = CONNECT_SECONDS, deserializers: Sequence[str] | None = None, plugins: Path | None = None
) -> Any:
    """A client of the cluster whose scheduler is at `address`, with the certificates that Dask's own configuration names.

    Results of tasks may be made of Dask's families of `deserializers`; None means all, pickles among them. Workers need the code of
    the folder of `plugins` beside that of bench_mtl. Raises InputError: no address, Dask is not installed, certificates are missing or
    unusable, no scheduler answers there, or one of the workers that are there has other code than this process.
    """
    scheduler_address(asker, address)
    distributed = distributed_module(asker)
    security, connection = _from_configuration(asker, address, distributed)

    async def introduce() -> Any:
        async with distributed.rpc(address, connection_args=connection, deserializers=deserializers) as scheduler:
            return await scheduler.identity()

    try:
        # Before there is a client, which would try for long, and complain when it goes.
        kind = asyncio.run(asyncio.wait_for(introduce(), seconds))["type"]
    except Exception as error:  # whatever another kind of server makes Dask believe
        kind = str(error).split("\n")[0] or type(error).__name__
    if kind != "Scheduler":
        known = "allowed are local, and addresses such as tcp://host:8786"
        raise InputError(f"{asker}: no Dask scheduler answers at {address} ({kind}); {known}")
    client = distributed.Client(address, security=security, timeout=seconds, set_as_default=False, deserializers=deserializers)
    try:
        require_same_code(asker, client, plugins)
    except BaseException:
        asked(lambda: client.close(timeout=CLOSING_SECONDS))
        raise
    return client


def require_same_code(asker: str, client: Any, plugins: Path | None) -> None:
    """Raise InputError where a worker has other code than this process, or does not say which it has; `plugins` as in `client_at`."""
    from bench_mtl.core.running_code import difference, running_code

    try:
        found = answer(lambda: client.run(running_code, plugins, on_error="return"), _IMPORT_SECONDS)
    except Exception as error:
        raise InputError(f"{asker}: the Dask workers do not say which code they have ({' '.join(str(error).split())})") from None
    own = running_code(plugins)
    for worker, code in found.items():
        is_gone = isinstance(code, distributed_module(asker).comm.CommClosedError)
        if not is_gone and (different := difference(own, code)) is not None:
            raise InputError(f"{asker}: Dask worker {worker} {different}")


def _from_configuration(asker: str, address: str, distributed: Any) -> tuple[Any, Any]:
    """Return the security that Dask is configured for, and the arguments of a connection that has it."""
    try:
        security = distributed.Security()
        connection = security.get_connection_args("client")
    except (OSError, TypeError, ValueError, ImportError) as error:  # ssl.SSLError is an OSError
        raise InputError(f"{asker}: the certificates that Dask is configured for cannot be used: {error}") from None
    if connection["ssl_context"] is None and address.startswith(_WITH_CERTIFICATES):
        names = ", ".join(f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY"))
        raise InputError(f"{asker}: {address} needs certificates; name their files by {names}, or in Dask's configuration")
    return security, connection


def exposure(address: str) -> str | None:
    """Return what a user should know of a scheduler to which anybody may talk, None where certificates or one process keep others out."""
    if address.startswith((*_WITH_CERTIFICATES, "inproc://")):
        return None
    return (
        f"{address} is neither encrypted nor protected: anyone who reaches it can run code on the cluster and in this command; "
        "tls:// addresses are both"
    )


def client_of(cluster: Any, deserializers: Sequence[str] | None = None) -> Any:
    """A client of a cluster of our own, the default one of this process for nobody; `deserializers` as for `client_at`."""
    return distributed_module("a cluster").Client(cluster, set_as_default=False, deserializers=deserializers)


def close_local(cluster: Any, patience: float) -> None:
    """Close a cluster of our own, or kill its workers where they do not end; what they have started dies with them."""
    from distributed import Status

    nannies = list(cluster.workers.values())
    workers = []  # a nanny that fails to end its worker forgets it
    for pid in [nanny.pid for nanny in nannies if nanny.pid is not None]:
        with contextlib.suppress(psutil.Error):
            workers.append(psutil.Process(pid))
    closing = asked(cluster.close)
    with contextlib.suppress(Exception):
        closing.result(patience)
    if not closing.done():
        for nanny in nannies:
            nanny.status = Status.closing_gracefully  # otherwise it starts another worker, which would outlive this process
    for worker in workers:
        with contextlib.suppress(psutil.Error):  # it has ended
            worker.kill()
    with contextlib.suppress(Exception):
        closing.result(CLOSING_SECONDS)


def answer(request: Callable[[], Any], seconds: float) -> Any:
    """What the cluster answers within a few seconds; a scheduler that hangs would not let Dask's own calls return.

    Raises TimeoutError: it does not.
    """
    try:
        return asked(request).result(seconds)
    except TimeoutError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def asked(request: Callable[[], Any]) -> Future[Any]:
    """A request made in a thread that nobody needs to wait for, not even the end of this process."""
    given: Future[Any] = Future()

    def ask() -> None:
        try:
            given.set_result(request())
        except BaseException as error:
            given.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return given


def dask_setup(server: Any) -> None:
    """Called by the scheduler and the Dask workers of a local cluster, or of one that preloads this module, as they start."""
    server.http_server.stop()  # its port would be open to everybody
    if getattr(server, "nanny", None) is not None:  # a worker: Ctrl-C in a terminal reaches it too, but is for its parent to handle
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if size := int(os.environ.get(_MEMORY_VARIABLE, "0")):
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (size, size))
