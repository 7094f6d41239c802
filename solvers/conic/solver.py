"""The solver that asks any backend of CVXPY for one tolerance after another."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

from bench_mtl.core.checks import one_of, positive_numbers, real_number, unless_none, whole_number
from bench_mtl.core.compilation import compiling_seconds
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import one_line
from bench_mtl.core.threads import pinned_thread_count
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, Capability, ConicModel, OneShotSolver, Problem, Solver
from bench_mtl.solvers.conic.backend import Backend, Method, merged
from bench_mtl.solvers.conic.lookup import backend_name, find_backend, is_installed, is_licence_error, missing_cones
from bench_mtl.solvers.conic.table import BACKENDS, FREE


@dataclass(frozen=True)
class Conic(OneShotSolver):
    """The problem's conic form, canonicalised once by CVXPY and solved to each tolerance of a ladder.

    The solve time is what the backend itself reports. All else that happens in a call is set-up: CVXPY's hand-over (for HiGHS it builds
    a model anew each time), and the set-up that some report apart (ordering, scaling, SCS's first factorisation). The others have theirs in
    their solve time. A backend that reports no time (CVXOPT, SDPA, PROXQP) is charged for the whole call. Iterations are the backend's own
    count, 0 where CVXPY does not pass it on; work in passes over the data is unknown and stays 0.

    Parameters
    ----------
    backend : any solver that CVXPY knows, or CUPDLPX, in upper or lower case. Those with an entry in `table.py` get the tolerance by its
        options: ECOS, SCS, CLARABEL, HIGHS, PDLP, OSQP, PROXQP, PIQP, QOCO, CVXOPT, SDPA, MOREAU, MPAX, CUOPT, MOSEK, GUROBI and more
    method : a method of the backend: "simplex", "ipx" and "hipo" (interior points, without crossover; the second needs the package
        highspy-extras), "pdlp" or "hipdlp" of HIGHS, which chooses one by default; "gpu" of MOREAU, QOCO and MPAX
    form : one of the problem's conic forms; its first one by default
    unit : unit of the coefficients in the model, 1 for the data as they are; by default the problem chooses one, far from 1 only where its
        data are
    ladder : tolerances for feasibility and gap, absolute and relative; by default down to what the backend can reach
    threads : for backends that have such an option (CLARABEL, HIGHS, PDLP ...); by default those that the process is pinned to
    options : passed on to the backend under its own option names, above everything set here
    tolerance_options : the backend's options that take the tolerance, instead of those in the table; needed for a backend that is in none.
        "table/name" is the option `name` in a table of options.

    Raises
    ------
    InputError : an unknown backend (the nearest name is suggested), one in no table without tolerance_options, a method that the backend
        does not have, a tolerance not above 0.
    """

    backend: str = "CLARABEL"
    method: str | None = None
    form: str | None = None
    unit: float | None = None
    ladder: tuple[float, ...] | None = None
    threads: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance_options: tuple[str, ...] = ()

    name: ClassVar[str] = "conic"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.CONIC})
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {name.lower(): {"backend": name} for name in BACKENDS}

    def __post_init__(self) -> None:
        object.__setattr__(self, "backend", backend_name(self.backend))
        names = self.tolerance_options
        if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) and name for name in names):
            raise InputError("tolerance_options", names, "a list of names of options")
        object.__setattr__(self, "tolerance_options", tuple(names))
        if self.method is not None:
            methods = tuple(self._backend.methods)
            if not methods:
                raise InputError("method", self.method, f"left out for {self.backend}, which has one only")
            if self.backend == "HIGHS" and self.method == "ipm":
                raise InputError("method must be 'ipx' or 'hipo', not 'ipm', which is the one or the other by what is installed")
            one_of("method", self.method, methods)
        find_backend(self.backend, self.tolerance_options)
        unless_none(whole_number, "threads", self.threads, minimum=1)
        if self.form is not None and not isinstance(self.form, str):
            raise InputError("form", self.form, "a string")
        unless_none(positive_numbers, "ladder", self.ladder)
        unless_none(real_number, "unit", self.unit, strict=True)
        if not isinstance(self.options, Mapping):
            raise InputError("options", self.options, "a table of the backend's own options")

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(backend=name, method=method) for name in _usual_backends() for method in (None, *BACKENDS[name].methods)]

    @property
    def label(self) -> str:
        unit = None if self.unit is None else f"unit{self.unit:g}"
        settings = "".join(f" {name}={value}" for name, value in _flat(self.options))
        return one_line("_".join(part for part in (self.backend.lower(), self.method, self.form, unit) if part) + settings, 100)

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(sorted(map(float, self.ladder or self._method.tolerances), reverse=True))

    @property
    def version(self) -> str:
        if self._missing is not None:
            return "not installed"
        needs = self._method.needs
        own = [] if self._backend.package is None else [self._backend.package.version]
        others = [*([] if needs is None else [f"{needs.name} {needs.version}"]), f"cvxpy {metadata.version('cvxpy')}"]
        return " ".join([*own, f"({', '.join(others)})"])

    @property
    def has_own_limit(self) -> bool:
        return self._backend.time_option is not None

    def objection(self, problem: Problem) -> str | None:
        if self.form is not None and self.form not in problem.conic_forms:
            return f"{problem.name} has no conic form '{self.form}': it has {', '.join(problem.conic_forms)}"
        if self.unit is not None and not problem.chooses_unit:
            return f"{problem.name} has no unit to choose: its model is in that of its data"
        if self._missing is not None:
            return self._missing
        form = self._form(problem)
        needed = problem.conic_forms[form]
        missing = missing_cones(self.backend, self._backend, needed) or sorted(needed - (self._method.cones or needed))
        if missing:
            return f"{self.backend} does not support {_in_words(missing)} that form '{form}' of {problem.name} needs"
        if self._backend.is_commercial and not _has_licence(self.backend):
            return f"no licence for {self.backend}"
        if self._method.device is not None and (reason := self._method.device()) is not None:
            return f"{self.label} {reason}"
        return self._backend.refusal

    def warm_up(self) -> None:
        if self._method.device is not None and (reason := self._method.device()) is not None:
            raise InputError(f"{self.label} {reason}")
        _warm_up(os.getpid(), self.backend, self.tolerance_options, self.method if self._method.device is not None else None)

    def build(self, problem: Problem) -> ConicModel:
        form = self._form(problem)
        if self.unit is None:
            return problem.to_cvxpy(form)
        return problem.to_cvxpy(form, unit=self.unit)  # type: ignore[call-arg] # of a class that `chooses_unit`

    def compile(self, model: ConicModel) -> _Program:
        solver = self.backend if self._backend.interface is None else self._backend.interface()
        # A table, even an empty one: with None, CVXPY 1.9 cannot read Clarabel's answer back.
        data, chain, inverse = model.problem.get_problem_data(solver, solver_opts=dict(self._backend.reading))
        return _Program(model, data, chain, inverse)

    def solve(self, program: _Program, tolerance: float, seconds: float | None) -> Answer:
        from cvxpy.error import SolverError

        began, compiled = time.perf_counter(), compiling_seconds()
        problem, backend = program.model.problem, self._backend
        options = backend.options(tolerance, seconds, self.threads or pinned_thread_count())
        options = merged(merged(options, self._method.options), self.options)
        data = dict(program.data)  # of which some interfaces replace entries
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "solution may be inaccurate": the certificate will say so
            try:
                raw = program.chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=options)
            except Exception as error:
                said = one_line(str(error) or type(error).__name__, 97)
                if is_licence_error(error):
                    return Answer(None, False, f"no licence for {self.backend}: {said}")
                if isinstance(error, (ArithmeticError, RuntimeError)):  # numerical trouble, as in CVXPY's search for redundant rows
                    return Answer(None, False, f"{type(error).__name__}: {said}")
                raise
            out_of_time = seconds is not None and self._met_time_limit(raw, time.perf_counter() - began, seconds)
            try:
                problem.unpack_results(_with_point(raw), program.chain, program.inverse)
            except (SolverError, ValueError, KeyError) as error:  # CVXPY's exceptions where there is no solution to unpack
                return Answer(None, False, one_line(str(error) or type(error).__name__, 97), out_of_time)
        status, stats = str(problem.status), problem.solver_stats
        info = {"backend_status": status, "backend_solve_seconds": stats.solve_time, **backend.details(raw)}
        if program.model.unit != 1.0:
            info["unit_of_coefficients"] = program.model.unit
        if any(variable.value is None for variable in problem.variables()):
            return Answer(None, False, f"status {status}, no point", out_of_time, info=info)
        model, steps = program.model, int(stats.num_iters or 0)
        iterate = Iterate(*model.recover(), steps) if model.point is None else Iterate(model.point(), None, steps)
        # One that reports no time may have spent all of it on solving.
        counted = time.perf_counter() - began - (compiling_seconds() - compiled)
        setup_seconds = counted - float(stats.solve_time) if stats.solve_time else 0.0
        is_optimal = status == "optimal"
        finish = None if model.point is None else lambda: Iterate(*model.recover(), steps)
        return Answer(iterate, is_optimal, f"status {status}", out_of_time and not is_optimal, setup_seconds, info, finish)

    @property
    def _backend(self) -> Backend:
        return find_backend(self.backend, self.tolerance_options)

    @property
    def _method(self) -> Method:
        return self._backend.default if self.method is None else self._backend.methods[self.method]

    @property
    def _missing(self) -> str | None:
        """What is not installed and would have to be, in a sentence."""
        package = self._backend.package
        if not is_installed(self.backend, self._backend):
            return f"{self.backend} is not installed" + ("" if package is None else f" (package {package.name})")
        needs = self._method.needs
        if needs is not None and not needs.is_installed:
            return f"{self.method} of {self.backend} is not installed (package {needs.name})"
        return None

    def _met_time_limit(self, raw: Any, elapsed: float, seconds: float) -> bool:
        """Whether the limit of time ended a run; of a backend that does not say, one that ended late is believed to have met it."""
        if self._backend.met_time_limit is not None:
            return self._backend.met_time_limit(raw)
        return self._backend.time_option is not None and elapsed >= seconds

    def _form(self, problem: Problem) -> str:
        return self.form or next(iter(problem.conic_forms))


@dataclass(frozen=True)
class _Program:
    """A model after CVXPY's canonicalisation."""

    model: ConicModel
    data: dict[str, Any]
    chain: Any
    inverse: Any


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options, those in a table by their own names."""
    for name, value in options.items():
        yield from _flat(value) if isinstance(value, Mapping) else [(name, value)]


def _with_point(raw: Any) -> Any:
    """HiGHS's answers of unknown status, read as those of a limit: they have points, which CVXPY would throw away."""
    if isinstance(raw, dict) and raw.get("model_status") == "kUnknown":
        return {**raw, "model_status": "kIterationLimit"}
    return raw


@functools.cache
def _warm_up(process: int, backend: str, tolerance_options: tuple[str, ...], method: str | None = None) -> str | None:
    """Import CVXPY and the backend, and solve one linear programme in one variable; return its message where it has no point.

    Once in each process: a fork has to touch code and memory anew.
    """
    import cvxpy as cp

    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(x), [x >= 1])
    solver = Conic(backend=backend, method=method, tolerance_options=tolerance_options)
    answer = solver.solve(solver.compile(ConicModel(problem, lambda: (x.value, None))), 1e-2, None)
    if backend == "HIGHS":
        import highspy

        highspy.Highs.resetGlobalScheduler(True)  # ends its threads, with which no process could be forked from this one
    return answer.message if answer.iterate is None else None


@functools.cache
def _has_licence(backend: str) -> bool:
    """Whether a commercial backend solves a linear programme in one variable, or fails for another reason than its licence."""
    try:
        message = _warm_up(os.getpid(), backend, ())
    except Exception as error:
        return not is_licence_error(error)
    return message is None or not is_licence_error(message)


def _usual_backends() -> list[str]:
    """The backends that can be had without a licence, though perhaps for a GPU only, and of the others those that are installed.

    PROXQP is not among them: it takes most linear programmes of this package for infeasible. Whoever wants it names it.
    """
    usual = {name: backend for name, backend in BACKENDS.items() if name != "PROXQP"}
    return [name for name, backend in usual.items() if name in FREE or backend.default.device is not None or is_installed(name, backend)]


def _in_words(cones: list[str]) -> str:
    """The cones of `Problem.conic_forms` in words: "the psd cones"."""
    real = ", ".join(cone for cone in cones if cone != "squares")
    return " and ".join(([f"the {real} cones"] if real else []) + (["the squares"] if "squares" in cones else []))
