"""Problems as cone programmes, in the files that other solvers read: MPS for linear ones, CBF for the others."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.model.protocols import ConicModel

if TYPE_CHECKING:
    from bench_mtl.core.types import Array


class ConeProgramme(NamedTuple):
    """min c.x + offset over free x subject to b - A x in K.

    K is a product of the cones {0}, {s >= 0}, second-order cones (t, s) with t >= ||s||, semidefinite matrices, given by the lower triangle
    column by column with off-diagonal entries times sqrt(2), and exponential cones y exp(x / y) <= z: rows are in this order.
    """

    c: Array
    offset: float
    A: sp.csr_array
    b: Array
    cones: Any  # CVXPY's `ConeDims`: zero, nonneg, soc (rows of each), psd (the order of each matrix), exp (the number of cones)

    @property
    def is_linear(self) -> bool:
        """Whether there are linear rows alone."""
        return not (self.cones.soc or self.cones.psd or self.cones.exp)


def cone_programme(model: ConicModel) -> ConeProgramme:
    """Return a model after CVXPY's canonicalisation, with squares in the objective as second-order cones.

    Raises
    ------
    ValueError : it needs a cone that is none of those of `ConeProgramme`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, _, inverse = model.problem.get_problem_data("SCS", solver_opts={"use_quad_obj": False})
    if data["dims"].p3d or data["dims"].pnd or data.get("P") is not None:
        raise ValueError("the model has power cones or a quadratic objective")
    A = sp.csr_array(data["A"])
    A.sum_duplicates()
    A.eliminate_zeros()
    return ConeProgramme(np.asarray(data["c"], float), float(inverse[-1]["offset"]), A, np.asarray(data["b"], float), data["dims"])


def to_mps(programme: ConeProgramme, name: str) -> bytes:
    """Return a linear programme as an MPS file, written by HiGHS: numbers have its 15 digits. `name` has letters, digits and ``_`` alone.

    Raises
    ------
    ValueError : HiGHS does not take it.
    """
    import highspy

    rows, columns = programme.A.shape
    matrix, free = sp.csc_array(programme.A), highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.model_name_, lp.num_col_, lp.num_row_, lp.offset_ = name, columns, rows, programme.offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = programme.c, np.full(columns, -free), np.full(columns, free)
    lp.row_lower_, lp.row_upper_ = np.where(np.arange(rows) < programme.cones.zero, programme.b, -free), programme.b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.mps"
        if highspy.HighsStatus.kError in (highs.passModel(lp), highs.writeModel(str(path))):
            raise ValueError("HiGHS does not take the model")
        return path.read_bytes()


def to_cbf(programme: ConeProgramme, comment: str) -> bytes:
    """Return a cone programme in the Conic Benchmark Format, version 3: numbers have all their digits. `comment` is one line of ASCII.

    Semidefinite rows become matrices that are affine in x, all others scalar rows. A file of this form is read by MOSEK, SCIP-SDP, Pajarito
    and others.

    Source: Friberg, CBLIB 2014: a benchmark library for conic mixed-integer and continuous optimization, Math. Prog. Comp. 8, 2016.
    """
    cones, columns = programme.cones, programme.A.shape[1]
    first = cones.zero + cones.nonneg + sum(cones.soc)
    places = [(matrix, i, j) for matrix, n in enumerate(cones.psd) for j in range(n) for i in range(j, n)]
    after = first + len(places)
    # The format has the rows of an exponential cone backwards.
    order = [*range(first), *(after + 3 * cone + place for cone in range(cones.exp) for place in (2, 1, 0))]
    scalar = [("L=", cones.zero), ("L+", cones.nonneg), *(("Q", size) for size in cones.soc), *[("EXP", 3)] * cones.exp]
    heads = [f"{cone} {size}" for cone, size in scalar if size]
    parts = [f"# {comment}", "VER\n3", "OBJSENSE\nMIN", f"VAR\n{columns} 1\nF {columns}"]
    parts += ["\n".join(["CON", f"{len(order)} {len(heads)}", *heads])] if heads else []
    parts += ["\n".join(["PSDCON", str(len(cones.psd)), *map(str, cones.psd)])] if cones.psd else []
    parts.append(_section("OBJACOORD", ((str(j), value) for j, value in enumerate(programme.c.tolist()))))
    parts += [f"OBJBCOORD\n{programme.offset!r}"] if programme.offset else []
    parts.append(_section("ACOORD", ((f"{row} {column}", value) for row, column, value in _coordinates(-programme.A[order]))))
    parts.append(_section("BCOORD", ((str(row), value) for row, value in enumerate(programme.b[order].tolist()))))

    def placed(row: int, value: float, column: str = "") -> tuple[str, float]:
        matrix, i, j = places[row]
        return f"{matrix}{column} {i} {j}", value if i == j else value / np.sqrt(2.0)

    of_x = (placed(row, value, f" {column}") for row, column, value in _coordinates(-programme.A[first:after]))
    parts.append(_section("HCOORD", of_x))
    parts.append(_section("DCOORD", (placed(row, value) for row, value in enumerate(programme.b[first:after].tolist()))))
    return ("\n\n".join(filter(None, parts)) + "\n").encode("ascii")


def _coordinates(matrix: Any) -> Iterator[tuple[int, int, float]]:
    """Yield row, column and value of a sparse matrix, row by row."""
    matrix.sort_indices()
    entries = sp.coo_array(matrix)
    yield from zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)


def _section(name: str, entries: Iterable[tuple[str, float]]) -> str:
    """Return a section of coordinates that are not zero; empty where there are none."""
    lines = [f"{place} {float(value)!r}" for place, value in entries if value]
    return "\n".join([name, str(len(lines)), *lines]) if lines else ""
