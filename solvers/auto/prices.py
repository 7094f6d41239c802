"""What steps of solvers cost, counted from the sizes of the data: nanoseconds of one core, of which only the ratios matter.

A solver has no clock, so that equal data give equal bits on every machine: prices count operations, and weigh them by what they take in
general.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Iterate
from bench_mtl.solvers.working_set.run import rows_in_use

#: An entry of the design in a pass over it: tasks with data of their own, sparse data, shared data for every task, and once for all.
_ENTRY, _ENTRY_SPARSE, _ENTRY_SHARED, _READ_SHARED = 0.5, 0.8, 0.03, 0.8
#: An example of a step of a first-order method besides.
_EXAMPLE = 5.0
#: An iteration of working sets of rows, in all, a task, and an example; and the products on its rows that it takes.
_ITERATION, _ITERATION_TASK, _ITERATION_EXAMPLE, _PRODUCTS = 6e5, 1.5e5, 130.0, 10.0
#: A gap, beside its pass: bounds that hold in floating point.
_TEST = 1e6
#: A step of Newton's method that has a dense system, in all.
_NEWTON = 1e6
#: How many times as much an operation costs in singular directions.
_SPECTRAL = 8.0
#: Rows that dense data are expected to need: this share.
_ROWS_SHARE = 0.25


class Systems(enum.Enum):
    """How the systems of a Newton step are solved: of all coefficients in use at once, task by task, or in singular directions."""

    DENSE = enum.auto()
    BY_TASKS = enum.auto()
    SPECTRAL = enum.auto()


@dataclass(frozen=True)
class Prices:
    """What it costs to go from one iterate of a solver to the next on a design."""

    design: Design
    step: float = 1.5e5
    """Of a step of a first-order method beside its passes, and below of each coefficient in it."""
    coefficient: float = 15.0
    operation: float = 0.04
    """Of a factorisation."""
    systems: Systems = Systems.DENSE

    @property
    def a_pass(self) -> float:
        design = self.design
        if design.is_shared and not design.is_sparse:
            return _ENTRY_SHARED * self._entries + _READ_SHARED * design.n_stored
        return (_ENTRY_SPARSE if design.is_sparse else _ENTRY) * self._entries

    @property
    def _entries(self) -> float:
        return float(self.design.n_stored) * (self.design.n_tasks if self.design.is_shared else 1)

    @property
    def a_step(self) -> float:
        """The price of a step of a first-order method that makes one pass."""
        design = self.design
        coefficients = design.n_features * design.n_tasks
        return self.a_pass + self.step + _EXAMPLE * design.n_examples + self.coefficient * coefficients

    @property
    def a_test(self) -> float:
        """The price of the gap of an iterate: the objective takes a product with the data, the dual bound one with their transpose."""
        return self.a_pass + _TEST

    def of_passes(self, before: Iterate, after: Iterate) -> float:
        """Return the price of steps that make passes over the data, and little else."""
        return (after.work - before.work) * self.a_pass + (after.step - before.step) * (self.a_step - self.a_pass)

    def of_sets(self, before: Iterate, after: Iterate) -> float:
        """Return the price of interior-point steps on the rows that are not 0."""
        return (after.step - before.step) * self.an_iteration(float(np.count_nonzero(rows_in_use(after.primal))))

    def of_newton(self, before: Iterate, after: Iterate) -> float:
        """Return the price of Newton steps on the dual, whose systems are those of the rows that are not 0."""
        passes = (after.work - before.work) * self.a_pass
        return passes + (after.step - before.step) * self._a_system(float(np.count_nonzero(rows_in_use(after.primal))))

    @property
    def expected_rows(self) -> float:
        return 0.0 if self.design.is_sparse else _ROWS_SHARE * self.design.n_features

    def an_iteration(self, rows: float) -> float:
        """Return the price of an interior-point step on so many rows."""
        design = self.design
        m, rows = design.n_tasks, min(rows, design.n_features)
        share, n = rows / design.n_features, design.n_examples / m
        narrow = min(n * rows**2 + rows**3, 2.0 * n**2 * rows + n * rows**2)
        factors = self._entries * share * rows * share if design.is_sparse else m * narrow
        rest = _ITERATION + _ITERATION_TASK * m + _ITERATION_EXAMPLE * design.n_examples
        return (0.5 + _PRODUCTS * share) * self.a_pass + rest + self.operation * (factors + rows**3 / 3.0)

    @property
    def a_newton_step(self) -> float:
        """The price of a Newton step on the rows that are expected to matter."""
        return 3.0 * self.a_pass + self._a_system(self.expected_rows)

    @property
    def a_dense_step(self) -> float:
        """The price of a Newton step on all coefficients."""
        return self.a_pass + self._a_system(self.design.n_features)

    def of_all(self, before: Iterate, after: Iterate) -> float:
        """Return the price of Newton steps whose systems are those of all coefficients."""
        return (after.work - before.work) * self.a_pass + (after.step - before.step) * self._a_system(self.design.n_features)

    def _a_system(self, rows: float) -> float:
        m = self.design.n_tasks
        if self.systems is Systems.SPECTRAL:
            return _NEWTON + _SPECTRAL * self.operation * (m * self.design.n_features) ** 3 / 3.0
        return _NEWTON + self.operation * ((4.0 * m * rows**3 if self.systems is Systems.BY_TASKS else (m * rows) ** 3) / 3.0)
