"""Fixtures for all tests, and what their names may be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

from bench_mtl.engine.registry import Registry, load_registry

# First calls compile, which no deadline of single examples should count. All else is as Hypothesis has it, in CI and elsewhere.
settings.register_profile("bench_mtl", settings(), deadline=None)
settings.load_profile("bench_mtl")

PLUGINS = Path(__file__).parent / "plugins"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests with the address of an object: the processes of pytest-xdist would each collect others."""
    wrong = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]+", item.nodeid)]
    if wrong:
        raise pytest.UsageError(f"the address of an object is in the name of a test (give it ids): {wrong[0]}")


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
