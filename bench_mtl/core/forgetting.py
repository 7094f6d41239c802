"""Objects that remember what they have computed, and are pickled without it."""

from __future__ import annotations

from functools import cached_property
from types import ModuleType
from typing import Any


class Forgetting:
    """Pickled as it was made, without its cached properties: whoever compares it with what it was finds the same."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not isinstance(getattr(type(self), name, None), cached_property)}


def forget_cached(thing: object, depth: int = 4) -> None:
    """Have an object, and what it is made of, compute its cached properties anew, as if it had just been built."""
    kind, attributes = type(thing), getattr(thing, "__dict__", None)
    if not isinstance(attributes, dict) or isinstance(thing, type | ModuleType) or callable(thing):
        return
    for name, value in list(attributes.items()):
        if isinstance(getattr(kind, name, None), cached_property):
            del attributes[name]
        elif depth:
            for part in value if isinstance(value, list | tuple) else (value,):
                forget_cached(part, depth - 1)
