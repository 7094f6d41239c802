"""What runs of one suite have in common, wherever they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.engine.environment import describe_environment


@dataclass(frozen=True)
class Setting:
    """What a worker is given when it starts."""

    threads: int = 1
    """The threads that the numerical libraries use."""
    plugins: Path | None = None
    data_dir: Path | None = None
    processors: tuple[int, ...] | None = None
    """Numbers of the logical processors that it may use; None for all that its parent may use."""
    slots: int = 1
    """Cases that run at once on this machine."""
    isolation: str = "process"

    def environment(self) -> Mapping[str, Any]:
        """The environment of runs made in this process, which times depend on."""
        return describe_environment(self.threads) | {"slots": self.slots, "isolation": self.isolation}
