"""How many threads a library may use."""

from __future__ import annotations

import os


def pinned_thread_count() -> int:
    """The threads that the environment pins numerical libraries to; 1 where it pins nothing."""
    text = os.environ.get("OMP_NUM_THREADS", "1")
    return int(text) if text.isdigit() and int(text) > 0 else 1
