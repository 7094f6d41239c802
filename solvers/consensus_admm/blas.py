"""One thread for linear algebra: blocks share the processors already, and sums must not depend on how many there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_lock = threading.Lock()
_state: dict[str, Any] = {"inside": 0, "limits": None}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Holds for the process while at least one of its threads is inside; then what was set before holds again."""
    with _lock:
        if _state["inside"] == 0:
            _state["limits"] = _controller().limit(limits=1)
        _state["inside"] += 1
    try:
        yield
    finally:
        with _lock:
            _state["inside"] -= 1
            if _state["inside"] == 0:
                _state["limits"].restore_original_limits()


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Of the libraries that are loaded: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - has a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
