"""Which code this process runs, for a process on another machine to compare with its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench_mtl.core.code_digests import code_digests

#: The code that this process has loaded, whatever its files become while it runs.
_loaded = code_digests()

_BY_NOW = "by now"


def running_code(plugins: Path | None = None) -> dict[str, str]:
    """Return `code_digests`; where files have changed since this process loaded them, its digest is neither the old nor the new one."""
    now = code_digests(plugins)
    return {name: digest if _loaded.get(name, digest) == digest else f"{_loaded[name]}, {_BY_NOW} {digest}" for name, digest in now.items()}


def difference(expected: Mapping[str, str], found: object) -> str | None:
    """Return how what another process says of its code differs from the code of this one, in words that follow its name."""
    if not isinstance(found, Mapping):
        return "does not say which code it has: install the bench_mtl of this command there, and start it again"
    for name, digest in expected.items():
        other = found.get(name)
        if other == digest:
            continue
        if not other:
            return f"does not have {name} of this command"
        remedy = "start it again" if _BY_NOW in str(other) else "install the same on both and start it again"
        return f"has other code of {name} than this command ({other} instead of {digest}): {remedy}"
    return None
