"""What all peers share: their extra, their ladder of tolerances, and how the answers of a library become ours."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import one_of, positive_numbers, unless_none
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import one_line
from bench_mtl.core.types import PEER_PREFIX, Array, Iterate
from bench_mtl.model.forms import loss_under
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import Answer, AnyKind, OneShotSolver, Problem, Solver
from bench_mtl.solvers.peers.pieces import Layout, Piece, Pieces, by_columns, first_piece, obstacle, pieces_of, tiny

#: Tolerances to ask for: what a library makes of one is its own affair.
LADDER = tuple(10.0**-exponent for exponent in range(1, 15))
#: A stand-in for "no iteration limit"; time is the limit that binds.
MANY_ITERATIONS = 100_000


class Fitted(NamedTuple):
    """A library's answer for one `Piece`."""

    coefficients: Array
    """d numbers, or d x m."""
    iterations: int
    complaint: str = ""
    """Why it stopped before its tolerance was met; empty where it says that it did not."""
    find_dual: Callable[[], Array] | None = None
    """Returns n numbers, as in the problem's dual point, where the library offers none."""


@dataclass(frozen=True)
class Peer(OneShotSolver):
    """A library that minimises one of our objectives itself: no model is built, and there is no intercept.

    Its matrix is laid out as the library likes it once, as `build`. Its time is that of the call that a user would make, the library's own
    checks and copies included. A piece of the problem is fitted after the other where tasks can be separated.

    Parameters
    ----------
    ladder : tolerances in the library's own sense; by default 1e-1 to 1e-14, a decade apart
    options : passed on to the library under its own names, above everything set here
    """

    ladder: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    package: ClassVar[str]
    """What is imported."""
    distribution: ClassVar[str] = ""
    """What is installed, where that has another name."""
    extra: ClassVar[str | None] = "peers"
    """Of this package, that installs it; None where it always is."""
    methods: ClassVar[tuple[str, ...]] = ()
    """What an option `method` may be, the usual one first; empty for a peer that has none."""

    def __post_init__(self) -> None:
        unless_none(positive_numbers, "ladder", self.ladder)
        if not isinstance(self.options, Mapping):
            raise InputError("options", self.options, "a table of the library's own options")
        if self.methods:
            one_of("method", self._method, self.methods)

    @property
    def _method(self) -> Any:
        return getattr(self, "method", "")

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(method=method) for method in cls.methods] or [cls()]  # type: ignore[call-arg] # of a class with methods

    @property
    def label(self) -> str:
        name = self.name.removeprefix(PEER_PREFIX)
        return name if self._method in ("", *self.methods[:1]) else f"{name}_{self._method}"

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(sorted(map(float, self.ladder or LADDER), reverse=True))

    @property
    def version(self) -> str:
        return f"{self.package} {metadata.version(self.distribution or self.package)}" if self.is_installed else "not installed"

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def warm_up(self) -> None:
        importlib.import_module(self.package)

    def objection(self, problem: Problem) -> str | None:
        piece = first_piece(problem)
        why = obstacle(problem) or ("it needs a penalty above 0" if piece.penalty == 0.0 else self.refusal(piece))
        if why is not None:
            return f"{self.label} does not take this {problem.name}: {why}"
        if not self.is_installed:
            wanted = (self.distribution or self.package) if self.extra is None else f".[{self.extra}]"
            return f"{self.label} is not installed: pip install '{wanted}'"
        return None

    def build(self, problem: Problem) -> Pieces:
        return pieces_of(problem, self.layout(first_piece(problem)))

    def compile(self, model: Pieces) -> Pieces:
        """Fit a tiny piece of the same kind: skglm compiles for ten seconds in every process, and any code is slow when it first runs."""
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fit(tiny(model.pieces[0], self.layout(model.pieces[0])), 1e-3)
        return model

    def solve(self, program: Pieces, tolerance: float, seconds: float | None) -> Answer:
        found = []
        for piece in program.pieces:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = self.fit(piece, tolerance)
            said = next((one_line(str(each.message), 97) for each in caught if _is_of_convergence(each)), "")
            found.append(fitted._replace(complaint=fitted.complaint or said))
        W = np.column_stack([fitted.coefficients for fitted in found])
        complaint = next((fitted.complaint for fitted in found if fitted.complaint), "")
        iterate = Iterate(np.ascontiguousarray(W, dtype=np.float64), None, sum(fitted.iterations for fitted in found))
        finders = [fitted.find_dual for fitted in found if fitted.find_dual is not None]

        def finish() -> Iterate:
            return iterate._replace(dual=program.design.unstack(np.concatenate([find() for find in finders])))

        return Answer(iterate, not complaint, complaint or "its tolerance is met", finish=finish if len(finders) == len(found) else None)

    def layout(self, piece: Piece) -> Layout:
        """Return how X is laid out: so that the library copies it as seldom as it can."""
        return by_columns

    @abstractmethod
    def refusal(self, piece: Piece) -> str | None:
        """Why the library does not minimise such an objective, as the end of a sentence; None where it does.

        `piece` has no examples.
        """

    @abstractmethod
    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        """Return the library's solution of a piece that is not refused."""


class L1Peer(Peer):
    """A library with an l1 penalty of the squared loss, also with w >= 0, and of the logistic loss, for every task alone."""

    takes: ClassVar[tuple[AnyKind, ...]] = (loss_under("smooth", L1),)
    module: ClassVar[str] = ""
    """Where its `Lasso` is, if not in the package."""
    most_iterations: ClassVar[int] = 1000
    """Working sets at most: the libraries' own limits, of 20 to 100, end fits to tight tolerances too early."""

    def refusal(self, piece: Piece) -> str | None:
        if piece.loss not in ("squared", "logistic"):
            return f"it has no {piece.loss} loss"
        if piece.radius is not None:
            return "it has a penalty, and no constraint"
        if piece.nonneg and piece.loss != "squared":
            return f"it has no sign constraint with the {piece.loss} loss"
        return None

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        library = importlib.import_module(self.module or self.package)
        options: dict[str, Any] = {"fit_intercept": False, "tol": tolerance, "max_iter": self.most_iterations, **self.options}
        if piece.loss == "squared":
            model = library.Lasso(alpha=piece.relative_penalty / piece.n, positive=piece.nonneg, **options)
        else:
            model = self.logistic(library, piece, options)
        if hasattr(model, "copy_X") and "copy_X" not in self.options and not options["fit_intercept"]:
            model.copy_X = False  # which scikit-learn and celer copy although they centre nothing
        model.fit(piece.X, piece.y)
        return Fitted(np.ravel(model.coef_), int(np.max(getattr(model, "n_iter_", 0))))  # which not all say

    @abstractmethod
    def logistic(self, library: Any, piece: Piece, options: dict[str, Any]) -> Any:
        """Return its estimator for the logistic loss of a piece."""


def _is_of_convergence(warning: warnings.WarningMessage) -> bool:
    return "Convergence" in warning.category.__name__ or "converge" in str(warning.message)
