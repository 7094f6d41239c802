"""Generic conic solvers through CVXPY: ECOS, SCS, Clarabel, HiGHS and OR-tools' PDLP."""

from __future__ import annotations

import functools
import importlib.util
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, Capability, ConicModel, OneShotSolver, Problem, Solver

#: A stand-in for "no iteration limit"; time is the limit that binds.
_MANY_ITERATIONS = 10_000_000

#: Ladders of tolerances. An interior-point method overshoots its tolerance by about two decades, and a rung costs it a few iterations; a
#: first-order method ends near its tolerance, where a factor of three is a third of its time.
_INTERIOR = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
_FIRST_ORDER = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
_SIMPLEX = (1e-4, 1e-7, 1e-10)


@dataclass(frozen=True)
class Conic(OneShotSolver):
    """The problem's conic form, canonicalised once by CVXPY and solved to each tolerance of a ladder.

    The solve time is what the backend itself reports. All else that happens in a call is set-up: CVXPY's hand-over (for HiGHS it builds
    a model anew each time), and the set-up that ECOS and SCS report apart (ordering, scaling, SCS's first factorisation). Clarabel,
    HiGHS and PDLP report none, and have theirs in their solve time. Iterations are the backend's own count; work in passes over the
    data is unknown and stays 0.

    Parameters
    ----------
    backend : "ECOS", "SCS", "CLARABEL", "HIGHS" or "PDLP"
    method : a method of the backend: "simplex", "ipm" (without crossover) or "pdlp" of HIGHS, which chooses one by
        default; "tuned" of SCS, settings that suit the problems of this package better than its defaults
    form : one of the problem's conic forms; its first one by default
    unit : unit of the coefficients in the model, 1 for the data as they are; by default the problem chooses one, far from 1 only where its
        data are
    ladder : tolerances for feasibility and gap, absolute and relative; by default down to what the backend can reach
    threads : for backends that have such an option (CLARABEL, HIGHS, PDLP); by default those that the process is pinned to
    options : passed on to the backend under its own option names, above everything set here

    Raises
    ------
    InputError : an unknown backend, a method that the backend does not have, a tolerance not above 0.
    """

    backend: str = "CLARABEL"
    method: str | None = None
    form: str | None = None
    unit: float | None = None
    ladder: tuple[float, ...] | None = None
    threads: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "conic"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.CONIC})

    def __post_init__(self) -> None:
        one_of("backend", self.backend, tuple(_BACKENDS))
        if self.method is not None:
            methods = tuple(_BACKENDS[self.backend].methods)
            if not methods:
                raise InputError(f"method must be left out for {self.backend}, which has one only, not {self.method!r}")
            one_of("method", self.method, methods)
        if self.threads is not None:
            whole_number("threads", self.threads, minimum=1)
        if self.form is not None and not isinstance(self.form, str):
            raise InputError(f"form must be a string, not {self.form!r}")
        if self.ladder is not None and (not isinstance(self.ladder, (tuple, list)) or not self.ladder):
            raise InputError(f"ladder must be a non-empty list of tolerances, not {self.ladder!r}")
        if self.unit is not None:
            real_number("unit", self.unit, strict=True)
        for tolerance in self.ladder or ():
            real_number("ladder", tolerance, strict=True)
        if not isinstance(self.options, Mapping):
            raise InputError(f"options must be a table of the backend's own options, not {self.options!r}")

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(backend=name, method=method) for name, backend in _BACKENDS.items() for method in (None, *backend.methods)]

    @property
    def label(self) -> str:
        unit = None if self.unit is None else f"unit{self.unit:g}"
        return "_".join(part for part in (self.backend.lower(), self.method, self.form, unit) if part)

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(sorted(map(float, self.ladder or self._method.tolerances), reverse=True))

    @property
    def version(self) -> str:
        if not self._is_installed:
            return "not installed"
        return f"{metadata.version(_BACKENDS[self.backend].package)} (cvxpy {metadata.version('cvxpy')})"

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        if self.form is not None and self.form not in problem.conic_forms:
            return f"{problem.name} has no conic form '{self.form}': it has {', '.join(problem.conic_forms)}"
        if self.unit is not None and not problem.chooses_unit:
            return f"{problem.name} has no unit to choose: its model stands in that of its data"
        if not self._is_installed:
            return f"{self.backend} is not installed (package {_BACKENDS[self.backend].package})"
        form = self._form(problem)
        missing = sorted(problem.conic_forms[form] - _BACKENDS[self.backend].cones)
        if missing:
            return f"{self.backend} does not support the {', '.join(missing)} cones that form '{form}' of {problem.name} needs"
        return _clash() if self.backend == "PDLP" else None

    def warm_up(self) -> None:
        _warm_up(self.backend)

    def build(self, problem: Problem) -> ConicModel:
        form = self._form(problem)
        if self.unit is None:
            return problem.to_cvxpy(form)
        return problem.to_cvxpy(form, unit=self.unit)  # type: ignore[call-arg] # of a class that `chooses_unit`

    def compile(self, model: ConicModel) -> _Program:
        solver = _pdlp_interface() if self.backend == "PDLP" else self.backend
        # A table, even an empty one: with None, CVXPY 1.9 cannot read Clarabel's answer back.
        data, chain, inverse = model.problem.get_problem_data(solver, solver_opts=dict(_BACKENDS[self.backend].reading))
        return _Program(model, data, chain, inverse)

    def solve(self, program: _Program, tolerance: float, seconds: float | None) -> Answer:
        from cvxpy.error import SolverError

        began = time.perf_counter()
        problem, backend = program.model.problem, _BACKENDS[self.backend]
        defaults = backend.options(tolerance, seconds, self.threads or pinned_thread_count())
        semidefinite = self._method.semidefinite_options if getattr(program.data.get("dims"), "psd", ()) else {}
        options = {**defaults, **self._method.options, **semidefinite, **self.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "solution may be inaccurate": the certificate will say so
            raw = program.chain.solve_via_data(problem, program.data, warm_start=False, verbose=False, solver_opts=options)
            out_of_time = seconds is not None and backend.met_time_limit(raw)
            try:
                problem.unpack_results(_with_point(raw), program.chain, program.inverse)
            except (SolverError, ValueError) as error:  # CVXPY's exceptions where there is no solution to unpack
                return Answer(None, False, _first_line(error), out_of_time)
        status, stats = str(problem.status), problem.solver_stats
        info = {"backend_status": status, "backend_solve_seconds": stats.solve_time}
        if program.model.unit != 1.0:
            info["unit_of_coefficients"] = program.model.unit
        if any(variable.value is None for variable in problem.variables()):
            return Answer(None, False, f"status {status}, no point", out_of_time, info=info)
        iterate = Iterate(*program.model.recover(), int(stats.num_iters or 0))
        setup_seconds = time.perf_counter() - began - float(stats.solve_time or 0.0)
        return Answer(iterate, status == "optimal", f"status {status}", out_of_time, setup_seconds, info)

    @property
    def _method(self) -> _Method:
        backend = _BACKENDS[self.backend]
        return backend.default if self.method is None else backend.methods[self.method]

    @property
    def _is_installed(self) -> bool:
        return importlib.util.find_spec(_BACKENDS[self.backend].package) is not None

    def _form(self, problem: Problem) -> str:
        return self.form or next(iter(problem.conic_forms))


@dataclass(frozen=True)
class _Program:
    """A model after CVXPY's canonicalisation."""

    model: ConicModel
    data: dict[str, Any]
    chain: Any
    inverse: Any


@dataclass(frozen=True)
class _Method:
    """A method of a backend: its ladder, and options that override those that follow from the tolerance."""

    tolerances: tuple[float, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    semidefinite_options: Mapping[str, Any] = field(default_factory=dict)
    """Options that override `options` where there is a semidefinite cone."""


@dataclass(frozen=True)
class _Backend:
    package: str
    cones: frozenset[str]
    options: Callable[[float, float | None, int], dict[str, Any]]
    """(tolerance, seconds, threads) -> the backend's own options."""
    met_time_limit: Callable[[Any], bool]
    """raw answer -> whether the time limit ended it, which CVXPY's status does not tell from other ends."""
    default: _Method
    methods: Mapping[str, _Method] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Options that CVXPY needs when it reads answers."""


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
    limit = {} if seconds is None else {"time_limit": seconds}
    # One tolerance for all that HiGHS checks: it calls an answer that meets only some of its tolerances "unknown". At least 1e-10.
    return {"kkt_tolerance": max(tolerance, 1e-10), "output_flag": False, "threads": threads, **limit}


def _pdlp(tolerance: float, seconds: float | None, threads: int) -> dict[str, Any]:
    limit = {} if seconds is None else {"time_sec_limit": seconds}
    criteria = {"eps_optimal_absolute": tolerance, "eps_optimal_relative": tolerance}
    return {
        "termination_criteria": {"simple_optimality_criteria": criteria, **limit},
        "num_threads": threads,
        "presolve_options": {"use_glop": True},  # CVXPY's default: it finds the bounds among the rows
    }


_BACKENDS = {
    "ECOS": _Backend("ecos", frozenset({"linear", "quadratic", "exponential"}), _ecos, lambda raw: False, _Method(_INTERIOR)),
    "SCS": _Backend(
        "scs",
        frozenset({"linear", "quadratic", "psd", "exponential"}),
        _scs,
        lambda raw: "time_limit_secs" in raw["info"]["status"],
        _Method(_FIRST_ORDER),
        # A third to a half of the iterations with the defaults on small synthetic cases, at 1e-3; less is saved at 1e-5 on linear ones.
        # Other settings (no acceleration, over-relaxation) helped on some of these cases and not on others, and are left alone.
        {"tuned": _Method(_FIRST_ORDER, {"scale": 0.01}, {"scale": 1.0})},
    ),
    "CLARABEL": _Backend(
        "clarabel",
        frozenset({"linear", "quadratic", "psd", "exponential"}),
        _clarabel,
        lambda raw: str(raw.status) == "MaxTime",
        _Method(_INTERIOR),
        reading={"accept_unknown": True},  # the point where it cannot go on is often good
    ),
    "HIGHS": _Backend(
        "highspy",
        frozenset({"linear"}),
        _highs,
        lambda raw: raw["model_status"] == "kTimeLimit",
        _Method(_SIMPLEX),
        {
            "simplex": _Method(_SIMPLEX, {"solver": "simplex"}),
            "ipm": _Method(_INTERIOR, {"solver": "ipm", "run_crossover": "off"}),
            "pdlp": _Method(_FIRST_ORDER, {"solver": "pdlp"}),
        },
    ),
    "PDLP": _Backend("ortools", frozenset({"linear"}), _pdlp, lambda raw: raw["out_of_time"], _Method(_FIRST_ORDER)),
}


def _with_point(raw: Any) -> Any:
    """HiGHS's answers of unknown status, read as those of a limit: they have points, which CVXPY would throw away."""
    if isinstance(raw, dict) and raw.get("model_status") == "kUnknown":
        return {**raw, "model_status": "kIterationLimit"}
    return raw


@functools.cache
def _pdlp_interface() -> Any:
    """CVXPY's interface to PDLP without bounds on variables, which CVXPY 1.9 fails on, and with what PDLP tells of its run."""
    from cvxpy.reductions.solution import Solution
    from cvxpy.reductions.solvers.conic_solvers.pdlp_conif import PDLP

    class UnboundedPDLP(PDLP):  # type: ignore[misc]
        BOUNDED_VARIABLES = False

        def name(self) -> str:
            return "UNBOUNDED_PDLP"

        def solve_via_data(self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None) -> dict[str, Any]:
            from google.protobuf.json_format import ParseDict
            from ortools.pdlp import solve_log_pb2, solvers_pb2
            from ortools.pdlp.python import pdlp

            parameters = ParseDict(solver_opts, solvers_pb2.PrimalDualHybridGradientParams())
            result = pdlp.primal_dual_hybrid_gradient(data[self.PDLP_MODEL], parameters)
            log = result.solve_log
            found = self._get_convergence_info(log.solution_stats, log.solution_type)
            return {
                "primal": result.primal_solution,
                "dual": result.dual_solution,
                "status": self._status_map(log),
                "value": float("-inf") if found is None else found.primal_objective,
                "attr": {"solve_time": log.solve_time_sec, "num_iters": log.iteration_count},
                "out_of_time": log.termination_reason == solve_log_pb2.TERMINATION_REASON_TIME_LIMIT,
            }

        def invert(self, solution: dict[str, Any], inverse_data: Any) -> Any:
            inverted = super().invert(solution, inverse_data)
            return Solution(inverted.status, inverted.opt_val, inverted.primal_vars, inverted.dual_vars, solution["attr"])

    return UnboundedPDLP()


def _clash() -> str | None:
    """Why PDLP cannot be loaded here: later wheels of OR-tools bring a HiGHS of their own under the file name that highspy's has."""
    version = metadata.version("ortools")
    if tuple(int(part) for part in version.split(".")[:2]) < (9, 12) or importlib.util.find_spec("highspy") is None:
        return None
    return f"ortools {version} cannot be loaded beside highspy, whose library it replaces: install ortools<9.12"


def pinned_thread_count() -> int:
    """The threads that the environment pins numerical libraries to; 1 where it pins nothing."""
    text = os.environ.get("OMP_NUM_THREADS", "1")
    return int(text) if text.isdigit() and int(text) > 0 else 1


@functools.cache
def _warm_up(backend: str) -> None:
    """Import CVXPY and the backend, and solve one linear programme in one variable."""
    import cvxpy as cp

    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(x), [x >= 1])
    solver = Conic(backend=backend)
    solver.solve(solver.compile(ConicModel(problem, lambda: (x.value, None))), 1e-2, None)


def _first_line(error: Exception) -> str:
    line = (str(error) or type(error).__name__).splitlines()[0]
    return line if len(line) <= 100 else f"{line[:97]}..."
