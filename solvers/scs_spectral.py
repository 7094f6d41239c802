"""SCS with its spectral cones, without CVXPY: least squares with a sparse and a low-rank part."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.composite_problem import model_unit
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.protocols import Answer, Form, OneShotSolver, Problem

#: A first-order method ends near its tolerance: about three rungs a decade where it is fast.
_LADDER = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)

_MANY_ITERATIONS = 10_000_000

#: On 100 features and 30 tasks a fifth of the iterations to 1e-4 that SCS's defaults take, and 1e-6 in seconds instead of not at all.
_SETTINGS = {"scale": 1.0, "adaptive_scale": False}


@dataclass(frozen=True)
class ScsSpectral(OneShotSolver):
    """SCS on a `SplitForm` with the squared loss, whose nuclear norm and l1 norm are cones of their own: no lifting, no extra rows.

    ::

        min_{P,Q,t,r}  1/2 ||r||^2 + penalty t   subject to  X (P + Q) + r = y,  (radius, Q) in the cone of the nuclear norm,
                                                             (t, P) in that of the l1 norm

    SCS has these cones where it was built with them; its wheels were not. How to build it: docs/rivals.md.

    Parameters
    ----------
    ladder : tolerances for feasibility and gap, absolute and relative; by default 1e-2 to 1e-9
    options : passed on to SCS under its own names, above everything set here (a scale of 1 that stays)

    Raises
    ------
    InputError : an empty ladder, a tolerance not above 0, options that are no table.

    References
    ----------
    O'Donoghue, Chu, Parikh, Boyd, JOTA 169, 2016; Cederberg, Boyd, arXiv 2511.01089, 2025 (the cones).
    """

    ladder: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "scs_spectral"
    takes: ClassVar[tuple[type[Form], ...]] = (SplitForm,)

    def __post_init__(self) -> None:
        if self.ladder is not None and (not isinstance(self.ladder, (tuple, list)) or not self.ladder):
            raise InputError(f"ladder must be a non-empty list of tolerances, not {self.ladder!r}")
        for tolerance in self.ladder or ():
            real_number("ladder", tolerance, strict=True)
        if not isinstance(self.options, Mapping):
            raise InputError(f"options must be a table of SCS's own options, not {self.options!r}")

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(sorted(map(float, self.ladder or _LADDER), reverse=True))

    @property
    def version(self) -> str:
        return f"{metadata.version('scs')} with spectral cones" if _has_spectral_cones() else "not installed"

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        if problem.form(SplitForm).loss.name != "squared":
            return f"{self.label} takes the squared loss, not the {problem.form(SplitForm).loss.name} one"
        return None if _has_spectral_cones() else "scs was built without spectral cones"

    def warm_up(self) -> None:
        import scs  # noqa: F401

    def build(self, problem: Problem) -> _Program:
        form = problem.form(SplitForm)
        unit, (d, m) = model_unit(form.design), (form.design.n_features, form.design.n_tasks)
        X = sp.csc_array(form.design.stacked()) * unit
        (N, dm), eye, nothing = X.shape, sp.eye_array(d * m, format="csc"), sp.csc_array
        # SCS wants at least as many rows as columns of Q.
        order = np.arange(dm) if d >= m else np.arange(dm).reshape(d, m, order="F").ravel()
        rows: list[list[Any]] = [
            [X, X, nothing((N, 1)), sp.eye_array(N)],
            [nothing((1, 2 * dm + 1 + N))],
            [nothing((dm, dm)), -eye[order], nothing((dm, 1 + N))],
            [nothing((1, 2 * dm)), -sp.eye_array(1), nothing((1, N))],
            [-eye, nothing((dm, dm + 1 + N))],
        ]
        A = sp.csc_matrix(sp.vstack([sp.hstack(row) for row in rows]))
        b = np.concatenate([form.design.stack(form.targets), [form.radius / unit], np.zeros(2 * dm + 1)])
        c = np.concatenate([np.zeros(2 * dm), [form.penalty * unit], np.zeros(N)])
        squares = sp.csc_matrix(sp.diags_array(np.concatenate([np.zeros(2 * dm + 1), np.ones(N)])))
        cones = {"z": N, "nuc_m": [max(d, m)], "nuc_n": [min(d, m)], "ell1": [dm]}
        return _Program(form.design, {"A": A, "b": b, "c": c, "P": squares}, cones, unit)

    def solve(self, program: _Program, tolerance: float, seconds: float | None) -> Answer:
        import scs

        began = time.perf_counter()
        limit = {} if seconds is None else {"time_limit_secs": seconds}
        criteria = {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": _MANY_ITERATIONS, **limit}
        options = {**criteria, **_SETTINGS, "verbose": False, **self.options}
        raw = scs.solve(program.data, program.cones, **options)
        told = raw["info"]
        info: dict[str, Any] = {"backend_status": str(told["status"]), "linear_solver": str(told["lin_sys_solver"])}
        if program.unit != 1.0:
            info["unit_of_coefficients"] = program.unit
        out_of_time = "time_limit_secs" in told["status"]
        if not np.isfinite(raw["x"]).all():
            return Answer(None, False, f"status {told['status']}, no point", out_of_time, info=info)
        iterate = Iterate(*program.read(np.asarray(raw["x"])), int(told["iter"]))
        setup_seconds = time.perf_counter() - began - told["solve_time"] / 1000.0
        return Answer(iterate, told["status"] == "solved", f"status {told['status']}", out_of_time, setup_seconds, info)


@dataclass(frozen=True)
class _Program:
    """What SCS is called with."""

    design: Design
    data: dict[str, Any]
    cones: dict[str, Any]
    unit: float

    def read(self, x: Array) -> tuple[Array, Array]:
        """Return the point (P, Q), 2 x d x m, and the residuals."""
        shape = self.design.n_features, self.design.n_tasks
        dm = shape[0] * shape[1]
        P, Q = (self.unit * part.reshape(shape, order="F") for part in (x[:dm], x[dm : 2 * dm]))
        return np.stack([P, Q]), self.design.unstack(x[2 * dm + 1 :])


def _has_spectral_cones() -> bool:
    """Whether the compiled part of SCS knows the name of the cone's option: asking SCS itself prints its complaint."""
    found = importlib.util.find_spec("scs")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return any(b"nuc_m" in file.read_bytes() for folder in folders for file in Path(folder).glob("_scs_direct*"))
