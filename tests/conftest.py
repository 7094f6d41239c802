"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench_mtl.registry import Registry, load_registry

PLUGINS = Path(__file__).parent / "plugins"


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
