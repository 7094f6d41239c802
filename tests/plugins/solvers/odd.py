"""Solvers whose declarations and small change are odd: what they say of themselves, how they count, what they raise."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench_mtl.core.errors import IncompleteError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    """Cannot be read back by whoever it is sent to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ("pickled",)


class Mute:
    def __str__(self) -> str:
        raise ValueError("no words")


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words for it")


#: Characters.
_HUGE = 5_000_000


def _refuse(*_: object) -> None:
    raise RuntimeError("not to be read")


_INFO: dict[str, Any] = {
    "function": lambda: None,
    "numpy_int": np.int64(3),
    "numpy_float": np.float64(0.5),
    "numpy_bool": np.bool_(True),
    "array": np.arange(3),
    "nan": math.nan,
    "enum": Colour.RED,
    "word": Word("word"),
    "huge": 10**400,
    "surrogate": "\ud800",
    "nul": "a\0b",
    "nested": {"a": [1, {2}]},
    "itself": type,
}


@dataclass(frozen=True)
class OddAnswer(OneShotSolver):
    """Answers with the zero point and odd additions."""

    kind: str = "info"

    name = "odd_answer"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"answer_{self.kind}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        zero = Iterate(program.zero())
        if self.kind == "mute_info":
            return Answer(zero, False, "", info={"mute": Mute()})
        if self.kind == "keys":
            return Answer(zero, False, "", info={3: 4, None: 5})  # type: ignore[dict-item]
        if self.kind == "no_mapping":
            return Answer(zero, False, "", info=7)  # type: ignore[arg-type]
        if self.kind == "setup":
            return Answer(zero, False, "", setup_seconds=np.float32(1e9))  # type: ignore[arg-type]
        if self.kind == "nan_setup":
            return Answer(zero, False, "", setup_seconds=math.nan)
        if self.kind == "no_answer":
            return None  # type: ignore[return-value]
        if self.kind == "huge_info":
            entries = {f"entry {number}": number for number in range(10_000)}
            return Answer(zero, False, "", info={"k" * _HUGE: "v" * _HUGE, **entries})
        if self.kind == "huge_message":
            return Answer(None, False, "m" * _HUGE)
        if self.kind == "no_point":
            return Answer(None, True, "\ud800 no point")
        return Answer(zero, False, "", info=_INFO)


@dataclass(frozen=True)
class OddStep(IterativeSolver):
    """Yields points with odd counts."""

    kind: str = "numpy"

    name = "odd_step"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"step_{self.kind}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        zero = problem.zero()
        counts: Mapping[str, tuple[Any, Any]] = {
            "numpy": (np.int64(1), np.float32(2.0)),
            "huge": (10**30, 1.0),
            "negative": (-5, -1.0),
            "nan_work": (1, math.nan),
            "inf_work": (1, math.inf),
            "nan_step": (math.nan, 1.0),
            "inf_step": (math.inf, 1.0),
            "text": ("one", 1.0),
        }
        if self.kind == "float32":
            yield Iterate(zero.astype(np.float32), None, 1, 1.0)  # type: ignore[arg-type]
        elif self.kind == "list":
            yield Iterate(zero.tolist(), None, 1, 1.0)
        elif self.kind == "no_iterator":
            return
        else:
            yield Iterate(zero, None, *counts[self.kind])


@dataclass(frozen=True)
class OddRaise(IterativeSolver):
    """Raises in the method `where` what `kind` says."""

    where: str = "steps"
    kind: str = "error"

    name = "odd_raise"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"{self.where}_{self.kind}"

    def warm_up(self) -> None:
        self._raise("warm_up")

    def incompatibility(self, problem: Problem) -> str | None:
        self._raise("incompatibility")
        return super().incompatibility(problem)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        self._raise("steps")
        yield Iterate(problem.zero())
        self._raise("later")

    def _raise(self, where: str) -> None:
        if where == self.where:
            raise _RAISED[self.kind]


_RAISED: dict[str, BaseException] = {
    "error": RuntimeError("two lines\nof trouble"),
    "exit": SystemExit("leave"),
    "interrupt": KeyboardInterrupt(),
    "stop": StopIteration(),
    "generator_exit": GeneratorExit(),
    "memory": MemoryError("none left"),
    "base": BaseException("of all"),
    "surrogate": RuntimeError("\ud800 half a letter"),
    "wordless": WordlessError(),
    "long": RuntimeError("x" * 2**20),
    "incomplete": IncompleteError("the cluster is gone"),
}


@dataclass(frozen=True)
class OddMisfit(IterativeSolver):
    """Says that it does not fit, in `words` or in none."""

    words: str = "true"

    name = "odd_incompatibility"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"unfit_{self.words}"

    def incompatibility(self, problem: Problem) -> Any:
        return {"true": True, "empty": "", "number": 7, "word": Word("a word"), "surrogate": "\ud800"}[self.words]

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero())


_calls: list[int] = []


@dataclass(frozen=True)
class OddVersion(IterativeSolver):
    """Has another version each time that it is asked, or none in words."""

    kind: str = "changing"
    options: Mapping[str, Any] = field(default_factory=dict)

    name = "odd_version"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"version_{self.kind}"

    @property
    def version(self) -> Any:
        _calls.append(1)
        return {"changing": str(len(_calls)), "number": 3, "none": None}[self.kind]

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero())
