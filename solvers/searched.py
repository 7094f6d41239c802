"""Methods that try some sizes of steps from one start, each for a while, and go on with the one that has come lowest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench_mtl.core.types import Array
from bench_mtl.model.solver_state import Stepper


class Search(NamedTuple):
    """Where the search is, and its best point so far. A trial is a named tuple with `size`, `t` steps, and its `best` and `lowest`."""

    best: Array
    lowest: float
    first: Any
    """A trial without steps."""
    trial: Any
    chosen: Any
    """The best of the trials that are over."""
    number: int = 0
    """That of the trial, or how many there are once the chosen one goes on."""
    step: int = 0


class SearchStepper(Stepper):
    """Takes steps of one trial after the other.

    Parameters
    ----------
    sizes : of the trials
    length : number of steps of each
    most : number of steps of the chosen one; None for no end
    """

    def __init__(self, sizes: Sequence[float], length: int, most: int | None = None) -> None:
        self._sizes, self._length, self._most = sizes, length, most

    @abstractmethod
    def after(self, trial: Any) -> Any:
        """Return a trial after a step."""

    def searched(self, first: Any, lowest: float) -> Search:
        """Return the state before all steps, from a trial without them whose best point has this objective."""
        return Search(first.best, lowest, first, first._replace(size=self._sizes[0]), first)

    def step(self, now: Search) -> Search | None:
        best, lowest, first, trial, chosen, number, step = now
        if number < len(self._sizes) and trial.t == self._length:
            chosen = trial if number == 0 or trial.lowest < chosen.lowest else chosen
            number += 1
            trial = first._replace(size=self._sizes[number]) if number < len(self._sizes) else chosen
        if number == len(self._sizes) and trial.t == self._most:
            return None
        trial = self.after(trial)
        if trial.lowest < lowest:
            best, lowest = trial.best, trial.lowest
        return Search(best, lowest, first, trial, chosen, number, step + 1)
