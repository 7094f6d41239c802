"""Small stores from hand-made runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hand_reports import stored


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder as `stored` does."""
    return lambda *runs, environments=1, folder="results": stored(tmp_path / folder, runs, environments)
