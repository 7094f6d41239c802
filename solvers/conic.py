"""Generic conic solvers through CVXPY: ECOS, SCS, Clarabel and HiGHS."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

from bench_mtl.checks import one_of, real_number, whole_number
from bench_mtl.errors import InputError
from bench_mtl.protocols import Answer, Capability, ConicModel, OneShotSolver, Problem, Solver
from bench_mtl.types import Iterate

#: A stand-in for "no iteration limit"; time is the limit that binds.
_MANY_ITERATIONS = 10_000_000


@dataclass(frozen=True)
class Conic(OneShotSolver):
    """The problem's conic form, canonicalised once by CVXPY and solved to each tolerance of a ladder.

    Iterations are the backend's own count; work in passes over the data is unknown and stays 0.

    Parameters
    ----------
    backend : "ECOS", "SCS", "CLARABEL" or "HIGHS"
    form : one of the problem's conic forms; its first one by default
    tolerances : asked of feasibility and gap alike, absolute and relative, loose to tight
    threads : for backends that have such an option (CLARABEL, HIGHS); by default those that the process is pinned to
    options : passed on to the backend under its own option names, above everything set here
    """

    backend: str = "CLARABEL"
    form: str | None = None
    tolerances: tuple[float, ...] = (1e-3, 1e-5, 1e-7, 1e-9)
    threads: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "conic"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.CONIC})

    def __post_init__(self) -> None:
        one_of("backend", self.backend, tuple(_BACKENDS))
        if self.threads is not None:
            whole_number("threads", self.threads, minimum=1)
        if self.form is not None and not isinstance(self.form, str):
            raise InputError(f"form must be a string, not {self.form!r}")
        if not isinstance(self.tolerances, (tuple, list)) or not self.tolerances:
            raise InputError(f"tolerances must be a non-empty list of numbers, not {self.tolerances!r}")
        ladder = tuple(real_number("tolerances", tolerance, strict=True) for tolerance in self.tolerances)
        object.__setattr__(self, "tolerances", tuple(sorted(ladder, reverse=True)))
        if not isinstance(self.options, Mapping):
            raise InputError(f"options must be a table of the backend's own options, not {self.options!r}")

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(backend=backend) for backend in _BACKENDS]

    @property
    def label(self) -> str:
        return self.backend.lower() if self.form is None else f"{self.backend.lower()}_{self.form}"

    @property
    def version(self) -> str:
        if not self._is_installed:
            return "not installed"
        return f"{metadata.version(_BACKENDS[self.backend].package)} (cvxpy {metadata.version('cvxpy')})"

    def misfit(self, problem: Problem) -> str | None:
        reason = super().misfit(problem)
        if reason is not None:
            return reason
        if self.form is not None and self.form not in problem.conic_forms:
            return f"{problem.name} has no conic form '{self.form}': it has {', '.join(problem.conic_forms)}"
        if not self._is_installed:
            return f"{self.backend} is not installed (package {_BACKENDS[self.backend].package})"
        form = self._form(problem)
        missing = sorted(problem.conic_forms[form] - _BACKENDS[self.backend].cones)
        if missing:
            return f"{self.backend} does not support the {', '.join(missing)} cones that form '{form}' of {problem.name} needs"
        return None

    def warm_up(self) -> None:
        _warm_up(self.backend)

    def build(self, problem: Problem) -> ConicModel:
        return problem.to_cvxpy(self._form(problem))

    def compile(self, model: ConicModel) -> _Program:
        # The empty table matters: with None, CVXPY 1.9 cannot read Clarabel's answer back.
        data, chain, inverse = model.problem.get_problem_data(self.backend, solver_opts={})
        return _Program(model, data, chain, inverse)

    def solve(self, program: _Program, tolerance: float, seconds: float | None) -> Answer:
        from cvxpy.error import SolverError

        problem = program.model.problem
        options = {**_BACKENDS[self.backend].options(tolerance, seconds, self.threads or pinned_thread_count()), **self.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "solution may be inaccurate": the certificate will say so
            raw = program.chain.solve_via_data(problem, program.data, warm_start=False, verbose=False, solver_opts=options)
            try:
                problem.unpack_results(raw, program.chain, program.inverse)
            except (SolverError, ValueError) as error:  # how CVXPY says that there is no solution to unpack
                return Answer(None, False, _first_line(error))
        status, stats = str(problem.status), problem.solver_stats
        iterations = int(stats.num_iters or 0)
        info = {"backend_status": status, "backend_solve_seconds": stats.solve_time}
        out_of_time = status == "user_limit" and seconds is not None
        if any(variable.value is None for variable in problem.variables()):
            return Answer(None, False, f"status {status}, no point", out_of_time, info=info)
        primal, dual = program.model.recover()
        return Answer(
            Iterate(primal, dual, iterations),
            claims_optimal=status == "optimal",
            message=f"status {status}",
            out_of_time=out_of_time,
            setup_seconds=float(stats.setup_time or 0.0),
            info=info,
        )

    @property
    def _is_installed(self) -> bool:
        return importlib.util.find_spec(_BACKENDS[self.backend].package) is not None

    def _form(self, problem: Problem) -> str:
        return self.form or next(iter(problem.conic_forms))


@dataclass(frozen=True)
class _Program:
    """What CVXPY's canonicalisation leaves."""

    model: ConicModel
    data: dict[str, Any]
    chain: Any
    inverse: Any


@dataclass(frozen=True)
class _Backend:
    package: str
    cones: frozenset[str]
    options: Callable[[float, float | None, int], dict[str, Any]]
    """(tolerance, seconds, threads) -> the backend's own options."""


def _ecos(tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
    # ECOS has no time limit of its own: the runner's worker is killed at the limit.
    return {"abstol": tolerance, "reltol": tolerance, "feastol": tolerance, "max_iters": 1000}


def _scs(tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
    limit = {} if seconds is None else {"time_limit_secs": seconds}
    return {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": _MANY_ITERATIONS, **limit}


def _clarabel(tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
    limit = {} if seconds is None else {"time_limit": seconds}
    return {"tol_gap_abs": tolerance, "tol_gap_rel": tolerance, "tol_feas": tolerance, "max_iter": 1000, "max_threads": threads, **limit}


def _highs(tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
    bounded = max(tolerance, 1e-10)  # the smallest that HiGHS accepts
    limit = {} if seconds is None else {"time_limit": seconds}
    return {
        "primal_feasibility_tolerance": bounded,
        "dual_feasibility_tolerance": bounded,
        "ipm_optimality_tolerance": max(tolerance, 1e-12),
        "threads": threads,
        **limit,
    }


_BACKENDS = {
    "ECOS": _Backend("ecos", frozenset({"linear", "quadratic"}), _ecos),
    "SCS": _Backend("scs", frozenset({"linear", "quadratic", "psd"}), _scs),
    "CLARABEL": _Backend("clarabel", frozenset({"linear", "quadratic", "psd"}), _clarabel),
    "HIGHS": _Backend("highspy", frozenset({"linear"}), _highs),
}


def pinned_thread_count() -> int:
    """The threads that the environment pins numerical libraries to; 1 where it pins nothing."""
    text = os.environ.get("OMP_NUM_THREADS", "1")
    return int(text) if text.isdigit() and int(text) > 0 else 1


@functools.cache
def _warm_up(backend: str) -> None:
    """Import CVXPY and the backend, and solve one linear programme in one variable."""
    import cvxpy as cp

    x = cp.Variable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cp.Problem(cp.Minimize(x), [x >= 1]).solve(solver=backend)


def _first_line(error: Exception) -> str:
    line = (str(error) or type(error).__name__).splitlines()[0]
    return line if len(line) <= 100 else f"{line[:97]}..."
