"""Compiles ahead of time what runs, projections and tests call, so that no run on this machine has to wait for it."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_matrix
from bench_mtl.core.compilation import compiled_functions
from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import sparse_gram
from bench_mtl.core.tall_products import tall_adjoint, tall_product
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Tolerance
from bench_mtl.engine.clock import Clock
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.rehearsal import rehearse
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.weak_learners import StumpOracle

#: The part that is no solver's: every projection.
PROJECTIONS = "projections"

#: Those that call most of what others call too come first, each in a process of its own.
_FIRST = ("pdhg", PROJECTIONS, "auto", "interior_point", "accelerated_gradient", "sparse_online")

#: Matrices with short and with long rows, and with more rows than are sampled.
_SHAPES = ((40, 4), (6, 50), (600, 3))


@dataclass(frozen=True)
class Compiled:
    """What one part has compiled."""

    part: str
    seconds: float
    functions: int
    """Compiled now; those that were compiled before are only loaded."""
    trouble: str = ""


def compile_all(plugins: Path | None = None) -> Iterator[Compiled]:
    """Compile what every solver calls on problems of every kind, and every projection; yield what is done as it is done.

    A function that several parts call is compiled by the first. The parts are shared by as many processes as there are
    processors, up to two, for what all need can only be waited for. Raises InputError where a plug-in cannot be loaded.
    """
    solvers = sorted(load_registry(plugins).solvers)
    parts = sorted([*solvers, PROJECTIONS], key=lambda part: (_FIRST.index(part) if part in _FIRST else len(_FIRST), part))
    with ProcessPoolExecutor(min(2, available_processors()), multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compile_part, part, plugins) for part in parts]):
            yield done.result()


def compile_part(part: str, plugins: Path | None = None) -> Compiled:
    """Compile for one solver, or for `PROJECTIONS`, in this process."""
    start, before, trouble = time.perf_counter(), compiled_functions(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _compile_projections() if part == PROJECTIONS else _compile_solver(part, plugins)
        except Exception as error:
            trouble = " ".join(str(error).split()) or type(error).__name__
    return Compiled(part, time.perf_counter() - start, compiled_functions() - before, trouble)


def _compile_solver(name: str, plugins: Path | None) -> None:
    registry = load_registry(plugins)
    examples: list[Problem] = []
    for problem in registry.problems:
        with suppress(InputError):  # of another package, which cannot be loaded: `doctor` says so
            examples += registry.problems[problem].examples(np.random.default_rng(0))
    for solver in registry.solvers[name].variants():
        if isinstance(solver, IterativeSolver) and solver.version != "not installed":
            solver.warm_up()
            for example in examples:
                with suppress(Exception):  # which a run would show
                    if solver.incompatibility(example) is None:
                        rehearse(example, solver, Tolerance().relative_gap, Clock())


def _compile_projections() -> None:
    from bench_mtl.projections import STORAGES, SparseBall
    from bench_mtl.validation.validate import operators

    rng = np.random.default_rng(0)
    for operator in operators():
        for form in operator.forms:
            for shape in _SHAPES:
                A = rng.standard_normal(shape if form.ndim == 2 else shape[0] * shape[1])
                radius = 0.1 * float(np.abs(A).sum()) / len(A)
                for kernel in operator.kernels.values():
                    with suppress(Exception):  # what it does wrong is for other tests to say
                        kernel(A, radius, **form.keywords)
    for storage in STORAGES:
        for nonneg in (False, True):
            ball = SparseBall(1.0, nonneg=nonneg, storage=storage)
            for k in range(4):
                ball.add(np.arange(200) * (k + 1), np.linspace(-1.0, 1.0, 200))
            ball.get(np.arange(3))
            assert ball.nnz > 0
    sparse_gram(real_matrix("X", sp.csr_array(np.eye(2))))
    tall_adjoint(np.eye(2), tall_product(np.eye(2), np.eye(2)))
    StumpOracle.warm_up()
