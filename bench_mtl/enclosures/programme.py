"""The cone programme that CVXPY makes of a model, with the floats that it stores.

It is read from CVXPY's own chain of reductions before anything is formatted for a solver ::

    p = inf over x of 1/2 x^T P x + c^T x + d   subject to   A x + b in K, a product of cones.

These are private forms of CVXPY, as they are in releases 1.9.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import real_array, require_shape
from bench_mtl.core.errors import InputError, shown
from bench_mtl.core.rounding import UNIT
from bench_mtl.core.types import Array
from bench_mtl.enclosures.cones import Cone
from bench_mtl.enclosures.linear import least_eigenvalue

if TYPE_CHECKING:
    import cvxpy


@dataclass
class Programme:
    """A cone programme, and a solver's answer to it: nothing of the answer is trusted."""

    c: Array
    d: float
    P: Any
    """CSR and symmetric, or None."""
    A: Any
    b: Array
    cones: list[Cone]
    x: Array
    y: Array
    """Multipliers of the rows, in the duals of the cones; NaN is 0."""
    M: Any = field(init=False)
    """r = c - M (y, x0) is what is missing of a stationary point."""
    curvature: float = field(init=False)
    """P + curvature I is proven positive semidefinite."""

    def __post_init__(self) -> None:
        self.M = sp.csr_array(self.A.T if self.P is None else sp.hstack((self.A.T, -self.P)))
        self.curvature = 0.0 if self.P is None else _curvature_defect(self.P)
        self._measure()

    def answered(self, x: Array, y: Array) -> Programme:
        """Return the programme with another answer."""
        other = copy.copy(self)
        other.x, other.y = x, y
        other._measure()
        return other

    def _measure(self) -> None:
        """Find the sizes of the value, of variables and of slacks: they choose where is looked, and bound nothing."""
        x, largest = np.abs(self.x), float(np.abs(self.x).max(initial=0.0))
        half = 0.0 if self.P is None else float(self.x @ (self.P @ self.x)) / 2.0
        steepest = 0.0 if self.P is None else float(abs(self.P).max()) * largest
        least = 1e-6 * max(float(np.abs(self.c).max(initial=0.0)), steepest) * largest
        self.scale = max(float(np.abs(self.c) @ x) + half + abs(self.d), least) or 1.0
        self.least, self.most = sorted((self.d + half + float(self.c @ self.x), self.d - half - float(self.b @ self.y)))
        steepness = np.abs(self.c) + abs(self.A).T @ np.abs(self.y) + 1e-300
        self.sizes = x + np.minimum(self.scale / steepness, largest or 1.0)
        self.slacks = abs(self.A) @ (x + 0.01 * self.sizes) + np.abs(self.b)
        for cone in self.cones:
            self.slacks[cone.rows] = self.slacks[cone.rows].max(axis=1)[:, None]
        self.slacks[self.slacks == 0.0] = float(self.slacks.max(initial=0.0)) or 1.0


class Chain:
    """CVXPY's reductions of a model for a solver, up to the cone programme and on to the solver and back.

    Raises InputError: the model has no variables, has integers, or is none that the solver or the rules of CVXPY allow.
    """

    def __init__(self, model: cvxpy.Problem, solver: str | None, *, gp: bool, options: Mapping[str, Any]) -> None:
        from cvxpy.error import DCPError, DGPError, SolverError
        from cvxpy.reductions import CvxAttr2Constr

        if not model.variables():
            raise InputError("the model has no variables")
        if model.is_mixed_integer():
            raise InputError("the model has integer variables: only convex models are enclosed")
        if lost := [variable.name() for variable in model.variables() if _loses_attributes(variable)]:
            raise InputError(f"CVXPY drops attributes of the complex variables {', '.join(lost)}: state them as constraints")
        self.model, self.options = model, dict(options)
        try:
            self.chain = model._construct_chain(solver=solver, gp=gp, solver_opts=self.options)
        except (DCPError, DGPError, SolverError) as error:
            raise InputError(f"CVXPY refuses the model: {' '.join(str(error).split())}") from None
        self.chain.solver_context.solver_supports_bounds = False  # CVXPY 1.9 derives bounds for them that can be false
        reductions = self.chain.reductions
        self._last = max(i for i, reduction in enumerate(reductions) if isinstance(reduction, CvxAttr2Constr))
        reductions[self._last].reduce_bounds = True
        self._inverse: list[Any] = []
        self.program = self._apply()
        if any(variable.attributes["integer"] or variable.attributes["boolean"] for variable in self.program.variables):
            raise InputError("the model has integer constraints: only convex models are enclosed")  # such as FiniteSet
        starts = self.program.var_id_to_col
        self.columns = {v.id: slice(starts[v.id], starts[v.id] + v.size) for v in self.program.variables}
        """Those of the cone programme, by the number of its variable."""
        self.width = sum(variable.size for variable in self.program.variables)

    def _apply(self) -> Any:
        """Apply all reductions, and return the cone programme before it is rewritten for the cones of the solver."""
        from cvxpy import Problem
        from cvxpy.reductions import ConeMatrixStuffing

        reductions, inner, program = self.chain.reductions, self.model, None
        is_rewritten = any("Cone2Cone" in type(reduction).__name__ for reduction in reductions)
        for i, reduction in enumerate(reductions):
            inner, data = reduction.apply(inner)
            self._inverse.append(data)
            if i == self._last and is_rewritten:  # on a copy, since stuffing changes the objective
                plain = Problem(inner.objective.tree_copy(), inner.constraints)
                program, _ = ConeMatrixStuffing(quad_obj=not plain.objective.expr.is_affine()).apply(plain)
            elif isinstance(reduction, ConeMatrixStuffing) and not is_rewritten:
                program = inner
        self._data = inner
        return program

    def solve(self) -> Any:
        """Solve, give the variables of the model their values, and return the solver's answer as one to the cone programme."""
        from cvxpy.error import SolverError

        try:
            raw = self.chain.solve_via_data(self.model, self._data, solver_opts=self.options)
            solution = self.chain.solver.invert(raw, self._inverse[-1])
            self.model.unpack_results(raw, self.chain, self._inverse)
        except BaseException as error:  # whatever a solver raises for an option that it does not know, too
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            what = "the solver failed" if isinstance(error, SolverError) else "the solver refuses the model or an option"
            raise InputError(f"{what}: {' '.join(str(error).split())}") from None
        return self._inverted(solution, slice(-2, self._last, -1))

    def values(self, x: Array) -> dict[cvxpy.Variable, Array]:
        """Return what a point of the cone programme is for the variables of the model."""
        from cvxpy.reductions.solution import Solution

        solution = self._inverted(Solution("optimal", 0.0, self._by_variable(x), {}, {}), slice(self._last, None, -1))
        values = {variable: solution.primal_vars.get(variable.id) for variable in self.model.variables()}
        return {variable: dense(value) for variable, value in values.items() if value is not None}

    def require_variables(self, name: str, table: Mapping[Any, Any]) -> None:
        """Raise InputError for keys of a table that are no variables of the model."""
        known = {variable.id for variable in self.model.variables()}
        for key in table:
            if getattr(key, "id", None) not in known:
                raise InputError(
                    f"the keys of {name} must be variables of the model, not {key if getattr(key, 'name', None) else shown(key)}"
                )

    def arrays(self, values: Mapping[cvxpy.Variable, Any]) -> dict[cvxpy.Variable, Array]:
        """Return values of all variables of the model as arrays of their shapes."""
        if not isinstance(values, Mapping):
            raise InputError("values", values, "a table of the model's variables and their values")
        self.require_variables("values", values)
        if missing := [variable.name() for variable in self.model.variables() if variable not in values]:
            raise InputError(f"values are missing for {', '.join(missing)}")
        arrays = {}
        for variable in self.model.variables():
            name, array = f"the values of {variable.name()}", dense(values[variable])
            if variable.is_complex() and np.iscomplexobj(array):
                array = real_array(name, np.real(array)) + 1j * real_array(name, np.imag(array))
            else:
                array = real_array(name, array)
            require_shape(name, array, variable.shape)
            arrays[variable] = array
        return arrays

    def projected(self, values: Mapping[cvxpy.Variable, Array]) -> dict[cvxpy.Variable, Array]:
        """Give the variables of the model the values that their attributes allow, nearest to these, and return them.

        Raises InputError: a variable of a geometric programme has an entry that is not above 0.
        """
        for variable, value in values.items():
            variable.project_and_assign(value)
            if self._has_logarithms and not (dense(variable.value) > 0.0).all():
                raise InputError(f"the values of {variable.name()} must be above 0, as the model is a geometric programme")
        return {variable: dense(variable.value) for variable in values}

    def point_at(self, values: Mapping[cvxpy.Variable, Array]) -> Array:
        """Return the point of the cone programme at values that the variables have: NaN in columns that CVXPY adds."""
        x = np.full(self.width, np.nan)
        places = self._places()
        for variable, value in values.items():
            if variable.id not in places:  # one without entries
                continue
            place = dense(places[variable.id])
            if self._has_logarithms:
                place, value = place / variable.value, np.log(variable.value)
            for part in (np.real, np.imag):
                number = np.round(part(place)).astype(int)
                x[np.abs(number[number != 0]) - 1] = (np.sign(number) * part(value))[number != 0]
        return x

    def columns_of(self, variable: Any) -> NDArray[np.intp]:
        """Return the columns of a variable, each a real or imaginary part of an entry or minus one; none of what has no such columns."""
        if self._has_logarithms or getattr(variable, "id", None) is None:
            return np.zeros(0, dtype=int)
        place = dense(self._places().get(variable.id, np.zeros(0)))
        numbers = np.abs(np.round([np.real(place), np.imag(place)])).astype(int)
        return np.unique(numbers[numbers > 0]) - 1

    @property
    def _has_logarithms(self) -> bool:
        from cvxpy.reductions import Dgp2Dcp

        return any(isinstance(reduction, Dgp2Dcp) for reduction in self.chain.reductions)

    def _places(self) -> dict[int, Any]:
        """Return for variables of the model the columns of their entries, counted from 1, with the signs that they have there."""
        places = self._by_variable(1.0 + np.arange(self.width))  # what is linear in the columns takes their numbers along
        for reduction in self.chain.reductions[self._last :: -1]:
            places = reduction.var_forward(places)
        return places

    def _by_variable(self, x: Array) -> dict[int, Array]:
        return {v.id: x[self.columns[v.id]].reshape(v.shape, order="F") for v in self.program.variables}

    def _inverted(self, solution: Any, reductions: slice) -> Any:
        for reduction, data in list(zip(self.chain.reductions, self._inverse, strict=True))[reductions]:
            solution = reduction.invert(solution, data)
        return solution

    @property
    def is_flipped(self) -> bool:
        """Whether the cone programme minimises what the model maximises."""
        from cvxpy.reductions import FlipObjective

        return any(isinstance(reduction, FlipObjective) for reduction in self.chain.reductions)

    def in_terms_of_the_model(self, value: Any) -> Any:
        """Return an enclosure of the optimal value of the model, from one of the cone programme's."""
        from cvxpy.reductions import Dgp2Dcp, FlipObjective

        for reduction in reversed(self.chain.reductions):
            value = -value if isinstance(reduction, FlipObjective) else value.exp() if isinstance(reduction, Dgp2Dcp) else value
        return value


def programme_of(chain: Chain, primal: Mapping[int, Any], duals: Mapping[int, Any]) -> Programme:
    """Return CVXPY's cone programme with its rows in the order of `Cone`, and an answer, by the numbers of variables and constraints.

    Raises InputError: it has cones of another kind, or rows whose sums round.
    """
    program = chain.program
    P, c, d, A, b = (None, *program.apply_parameters()) if program.P is None else program.apply_parameters(quad_obj=True)
    both: Any = sp.csr_array(sp.hstack((A, sp.csr_array(np.asarray(b, dtype=np.float64)[:, None]))))  # b goes with its row
    x = np.zeros(len(c))
    for number in chain.columns.keys() & primal.keys():
        x[chain.columns[number]] = np.ravel(dense(primal[number]), order="F")
    pieces, cones, multipliers, place, row = [], [], [np.zeros(0)], 0, 0
    for constraint in program.constraints:
        size = sum(argument.size for argument in constraint.args)
        values = duals.get(constraint.id)
        y = np.zeros(size) if values is None else np.ravel(np.asarray(values, dtype=np.float64), order="F")
        kind, take, y, alpha = _laid_out(constraint, row, y)
        block = both[take.ravel()]
        lines = place + np.arange(take.size).reshape(take.shape)
        if kind == "psd":
            block = _with_transposes(block, both, row, constraint.args[0].shape)
        cones += [Cone(kind, line[None]) for line in lines] if kind == "psd" else [Cone(kind, lines, alpha)]
        pieces.append(sp.csr_array(block))
        multipliers.append(np.nan_to_num(y))
        row, place = row + size, place + take.size
    both = sp.csr_array(sp.vstack(pieces)) if pieces else sp.csr_array((0, len(c) + 1))
    A = sp.csr_array(both[:, :-1])
    A.eliminate_zeros()
    P = None if P is None or P.nnz == 0 else sp.csr_array(P)
    if P is not None and (P - P.T).nnz:
        raise InputError("the matrix of the quadratic objective is stored with entries that are not symmetric")
    return Programme(c, float(np.ravel(d)[0]), P, A, both[:, [-1]].toarray().ravel(), cones, x, np.concatenate(multipliers))


def _laid_out(constraint: Any, row: int, y: Array) -> tuple[str, NDArray[np.intp], Array, Array | None]:
    """Return the kind of a constraint, its rows as lines of `Cone`, its multipliers in their order, and exponents."""
    from cvxpy import PSD, SOC, ExpCone, NonNeg, PowCone3D, Zero

    first, rows = constraint.args[0].size, row + np.arange(len(y))
    if isinstance(constraint, (Zero, NonNeg)):
        return ("zero", rows[:, None], -y, None) if isinstance(constraint, Zero) else ("nonneg", rows[:, None], y, None)
    if isinstance(constraint, SOC):
        return "soc", np.hstack((rows[:first, None], rows[first:].reshape(first, -1))), y, None
    if isinstance(constraint, (ExpCone, PowCone3D)):
        alpha = np.ravel(constraint.alpha.value).astype(np.float64) if isinstance(constraint, PowCone3D) else None
        return ("exp" if alpha is None else "pow"), rows.reshape(3, -1).T, y, alpha
    if isinstance(constraint, PSD):
        upper, lower = _triangles(constraint.args[0].shape)
        return "psd", row + upper, ((y[upper] + y[lower]) / 2.0).ravel(), None
    raise InputError(f"cones of the kind {type(constraint).__name__} are not enclosed")


def _loses_attributes(variable: Any) -> bool:
    """Return whether CVXPY (1.9) makes a complex variable real and imaginary parts without some of its attributes."""
    if not variable.is_complex():
        return False
    names = {name for name, value in variable.attributes.items() if value is not None and value is not False}
    return not names <= {"complex", "imag"} and not (names <= {"complex", "hermitian"} and variable.ndim == 2)


def largest_rounding_of_exponents(model: cvxpy.Problem) -> float:
    """Return by how much CVXPY's fractions differ from exponents and weights of a model at most: 0 where it needs none."""
    found, stack, seen = 0.0, [model.objective, *model.constraints], set[int]()
    while stack:
        if id(node := stack.pop()) not in seen:
            seen.add(id(node))
            found = max(found, float(getattr(node, "approx_error", 0.0) or 0.0))
            stack += node if isinstance(node, list) else node.args  # a part that is minimised out is a list of constraints
    return found


def is_panic(error: BaseException) -> bool:
    """Return whether an exception is a panic of a library in Rust, which is no `Exception`."""
    return type(error).__name__ == "PanicException"


def dense(value: Any) -> Array:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


def multipliers_of(constraint: Any, values: Array) -> Array:
    """Return CVXPY's multipliers of a constraint as those of a `Cone`, line by line."""
    return _laid_out(constraint, 0, values)[2]


def _triangles(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of S_ij and of S_ji, i <= j, in a matrix or an array of matrices by columns: a line for each matrix."""
    places = np.arange(math.prod(shape)).reshape(shape, order="F").reshape(-1, *shape[-2:])
    i, j = np.triu_indices(shape[-1])
    return places[:, i, j], places[:, j, i]


def _with_transposes(block: Any, both: Any, row: int, shape: tuple[int, ...]) -> Any:
    """Return the rows of S_ij + S_ji, i < j, in the place of those of S_ij. Raises InputError: a sum rounds."""
    upper, lower = (places.ravel() for places in _triangles(shape))
    other = sp.csr_array(sp.diags_array((upper != lower).astype(np.float64)) @ both[row + lower])
    total = block + other
    if (total - block != other).nnz or (total - other != block).nnz:
        raise InputError("the sum of two rows of a semidefinite constraint rounds: make the matrix symmetric")
    return total


def _curvature_defect(P: Any) -> float:
    """Return delta with P + delta I proven positive semidefinite, block by block; inf where there is none."""
    _, label = sp.csgraph.connected_components(P, directed=False)
    is_single = np.bincount(label)[label] == 1
    worst = float((-P.diagonal()[is_single]).max(initial=0.0))
    order = np.argsort(label, kind="stable")
    order = order[~is_single[order]]
    for block in np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else []:
        worst = max(worst, -least_eigenvalue(P[block][:, block]))
    return worst if worst <= 0.0 else worst * (1.0 + 2.0 * UNIT)
