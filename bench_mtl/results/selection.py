"""Texts KEY=PATTERN that choose some of many: runs of a report, cases of a suite."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_mtl.core.errors import InputError, listed, nearest
from bench_mtl.engine.suite import Case

#: What one can choose by: the label of the problem, its name, the name or file of its data, the label of the solver, seed and repetition.
KEYS = ("problem", "family", "solver", "seed", "repetition", "data")


@dataclass(frozen=True)
class Selection:
    """Those whose values are like some patterns, given as KEY=PATTERN to an option of the command line; InputError for any other text.

    A key is one of `KEYS`, a pattern one of `fnmatch`. Patterns of one key are alternatives, different keys must all hold; without any text
    all are chosen.
    """

    texts: tuple[str, ...]
    option: str

    def __post_init__(self) -> None:
        for text in self.texts:
            key, equals, pattern = text.partition("=")
            if not equals or not pattern or key not in KEYS:
                near = nearest(key, KEYS) if equals and key not in KEYS else None
                raise InputError(self.option, text, f"KEY=PATTERN with a key of {', '.join(KEYS)}", near=near)

    def places(self, words: Callable[[str], Sequence[str]], number: int, noun: str) -> list[int]:
        """Return the places of the chosen ones of a `number` of things, each called a `noun`, whose values of a key `words` gives.

        Where there is none, the InputError names what there is instead.
        """
        chosen = set(range(number))
        for key in dict.fromkeys(text.partition("=")[0] for text in self.texts):
            alternatives = [text.removeprefix(f"{key}=") for text in self.texts if text.startswith(f"{key}=")]
            values = words(key)
            fits = {place for place, value in enumerate(values) if any(fnmatch.fnmatchcase(value, pattern) for pattern in alternatives)}
            if not fits:
                near = next((name for pattern in alternatives if (name := nearest(pattern.strip("*?"), values))), None)
                hint = "" if near is None else f"did you mean '{near}'? "
                there = f"{hint}there are {listed(values, alternatives[0])}"
                raise InputError(f"{self.option}: no {noun} has a {key} like {' or '.join(alternatives)}: {there}")
            chosen &= fits
        if not chosen:
            raise InputError(f"{self.option}: no {noun} fits {' and '.join(self.texts)} together")
        return sorted(chosen)


def chosen_cases(cases: Sequence[Case], selection: Selection) -> list[Case]:
    """Return the cases that are chosen, in their order; raises InputError where there is none."""
    values: Mapping[str, Callable[[Case], object]] = {
        "problem": lambda case: case.instance.label,
        "family": lambda case: case.instance.problem,
        "solver": lambda case: case.solver_label,
        "seed": lambda case: "" if case.instance.seed is None else case.instance.seed,
        "repetition": lambda case: case.repetition,
        "data": lambda case: data_word(case.instance.data),
    }
    return [cases[place] for place in selection.places(lambda key: [str(values[key](case)) for case in cases], len(cases), "case")]


def data_word(spec: Mapping[str, Any]) -> str:
    """Return what the table of a data set calls it: its name or its file."""
    return str(spec.get("name", spec.get("file", "")))
