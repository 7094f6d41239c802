"""Objects that remember what they have computed, and are pickled without it."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class Forgetting:
    """Pickled as it was made, without its cached properties: whoever compares it with what it was finds the same."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not isinstance(getattr(type(self), name, None), cached_property)}
