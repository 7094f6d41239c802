"""Fixtures for all tests, and what their names may be."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from bench_mtl.engine.registry import Registry, load_registry

if TYPE_CHECKING:
    from shared_cluster import SharedCluster

# First calls compile, which no deadline of single examples should count, and a busy machine makes no strategy too slow. The examples of a
# property are the same in every run; to find new ones is for the soak.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("bench_mtl", max_examples=25, derandomize=True, **UNTIMED)
settings.register_profile("soak", max_examples=300, **UNTIMED)  # pytest --hypothesis-profile=soak
settings.load_profile("bench_mtl")

PLUGINS = Path(__file__).parent / "plugins"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --slice."""
    parser.addoption("--slice", metavar="PERCENT:SEED", type=_slice, help="run this share of the tests, drawn by the seed: --slice 10:1f3a")


def _slice(text: str) -> tuple[float, str]:
    percent, _, seed = text.partition(":")
    return float(percent), seed


def is_drawn(nodeid: str, percent: float, seed: str) -> bool:
    """Return whether a test belongs to the slice: the same in every process, and another slice for every seed."""
    digest = hashlib.sha256(f"{seed} {nodeid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < percent / 100.0 * 2.0**64


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the slice. Refuse names of tests with the address of an object: the processes of pytest-xdist would each collect others."""
    if (chosen := config.getoption("--slice")) is not None:
        config.hook.pytest_deselected(items=[item for item in items if not is_drawn(item.nodeid, *chosen)])
        items[:] = [item for item in items if is_drawn(item.nodeid, *chosen)]
    wrong = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]+", item.nodeid)]
    if wrong:
        raise pytest.UsageError(f"the address of an object is in the name of a test (give it ids): {wrong[0]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A slice may have no test."""
    if session.config.getoption("--slice") is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets: BENCH_MTL_DATA, else shared/data beside the repository."""
    named = os.environ.get("BENCH_MTL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data: set BENCH_MTL_DATA")
    return folder


@pytest.fixture(scope="session")
def plugins() -> Path:
    """A plug-in folder with misbehaving solvers and a trapped problem."""
    return PLUGINS


@pytest.fixture(scope="session")
def faults(plugins: Path) -> Registry:
    """Everything installed and the plug-ins."""
    return load_registry(plugins)


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCluster]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    from shared_cluster import started

    with started(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(_cluster: SharedCluster) -> Iterator[SharedCluster]:
    """The Dask cluster of this process, which the first test that asks for it starts; all of its workers are to outlive every test.

    Dask has its certificates, so that its address is enough to find it.
    """
    import dask

    with dask.config.set(_cluster.settings):
        yield _cluster
    assert _cluster.has_its_workers()
