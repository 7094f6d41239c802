"""Workers that several tests use, where isolation is not what they test."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from runs import PLUGINS, Executing

from bench_mtl.runner import LocalExecutor, Setting


@pytest.fixture(scope="session")
def shared() -> Iterator[Executing]:
    """One slot for all such tests: its processes take longer to start than most tests; it goes on after each of them."""
    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        yield nullcontext(executor)


@pytest.fixture(scope="module")
def slot(plugins: Path) -> Iterator[Executing]:
    """One slot for the plug-ins of a file, which goes on after each of its tests."""
    with LocalExecutor(Setting(1, plugins)) as executor:
        yield nullcontext(executor)
