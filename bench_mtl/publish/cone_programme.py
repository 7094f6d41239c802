"""Problems as cone programmes, in the files that other solvers read: MPS for linear ones, CBF for the others."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.model.protocols import ConicModel

if TYPE_CHECKING:
    from bench_mtl.core.types import Array


@dataclass(frozen=True)
class ConeProgramme:
    """min c.x + offset over free x subject to b - A x in K.

    K is a product of the cones {0}, {s >= 0}, second-order cones (t, s) with t >= ||s||, semidefinite matrices, given by the lower triangle
    column by column with off-diagonal entries times sqrt(2), and exponential cones y exp(x / y) <= z: rows are in this order.
    """

    c: Array
    offset: float
    A: sp.csr_array
    b: Array
    zeros: int
    """Rows of the first cone."""
    nonnegative: int
    second_order: tuple[int, ...]
    """Rows of each cone."""
    semidefinite: tuple[int, ...]
    """The order of each matrix."""
    exponential: int
    """The number of these cones, of three rows each."""

    @property
    def is_linear(self) -> bool:
        """Whether there are linear rows alone."""
        return not (self.second_order or self.semidefinite or self.exponential)


def cone_programme(model: ConicModel) -> ConeProgramme:
    """Return a model after CVXPY's canonicalisation, with squares in the objective as second-order cones.

    Raises
    ------
    ValueError : it needs a cone that is none of those of `ConeProgramme`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, _, inverse = model.problem.get_problem_data("SCS", solver_opts={"use_quad_obj": False})
    dims = data["dims"]
    if dims.p3d or dims.pnd or data.get("P") is not None:
        raise ValueError("the model has power cones or a quadratic objective")
    A = sp.csr_array(data["A"])
    A.sum_duplicates()
    A.eliminate_zeros()
    return ConeProgramme(
        c=np.asarray(data["c"], dtype=np.float64),
        offset=float(inverse[-1]["offset"]),
        A=A,
        b=np.asarray(data["b"], dtype=np.float64),
        zeros=int(dims.zero),
        nonnegative=int(dims.nonneg),
        second_order=tuple(map(int, dims.soc)),
        semidefinite=tuple(map(int, dims.psd)),
        exponential=int(dims.exp),
    )


def to_mps(programme: ConeProgramme, name: str) -> bytes:
    """Return a linear programme as an MPS file, written by HiGHS: numbers have its 15 digits.

    Parameters
    ----------
    name : letters, digits and ``_`` alone

    Raises
    ------
    ValueError : it is not linear, or HiGHS does not take it.
    """
    import highspy

    if not programme.is_linear:
        raise ValueError("only a linear programme can be an MPS file")
    rows, columns = programme.A.shape
    matrix = sp.csc_array(programme.A)
    lp = highspy.HighsLp()
    lp.model_name_, lp.num_col_, lp.num_row_, lp.offset_ = name, columns, rows, programme.offset
    lp.col_cost_ = programme.c
    lp.col_lower_, lp.col_upper_ = np.full(columns, -highspy.kHighsInf), np.full(columns, highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([programme.b[: programme.zeros], np.full(programme.nonnegative, -highspy.kHighsInf)])
    lp.row_upper_ = programme.b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise ValueError("HiGHS does not take the model")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.mps"
        if highs.writeModel(str(path)) == highspy.HighsStatus.kError:
            raise ValueError("HiGHS cannot write the model")
        return path.read_bytes()


def to_cbf(programme: ConeProgramme, comment: str) -> bytes:
    """Return a cone programme in the Conic Benchmark Format, version 3: numbers have all their digits.

    Semidefinite rows become matrices that are affine in x, all others scalar rows. A file of this form is read by MOSEK, SCIP-SDP, Pajarito
    and others.

    Parameters
    ----------
    comment : in printable ASCII, on one line

    Source: Friberg, CBLIB 2014: a benchmark library for conic mixed-integer and continuous optimization, Math. Prog. Comp. 8, 2016.
    """
    order = _scalar_rows(programme)
    A, b = -sp.csr_array(programme.A[order]), programme.b[order]
    cones = [("L=", programme.zeros), ("L+", programme.nonnegative), *(("Q", size) for size in programme.second_order)]
    cones = [(cone, size) for cone, size in (*cones, *(("EXP", 3) for _ in range(programme.exponential))) if size]
    columns = programme.A.shape[1]
    parts = [f"# {comment}", "VER\n3", "OBJSENSE\nMIN", f"VAR\n{columns} 1\nF {columns}"]
    if cones:
        parts.append("\n".join(["CON", f"{len(order)} {len(cones)}", *(f"{cone} {size}" for cone, size in cones)]))
    if programme.semidefinite:
        parts.append("\n".join(["PSDCON", str(len(programme.semidefinite)), *map(str, programme.semidefinite)]))
    parts.append(_coordinates("OBJACOORD", ((str(j), value) for j, value in enumerate(programme.c.tolist()) if value)))
    if programme.offset:
        parts.append(f"OBJBCOORD\n{programme.offset!r}")
    parts.append(_coordinates("ACOORD", ((f"{i} {j}", value) for i, j, value in _entries(A))))
    parts.append(_coordinates("BCOORD", ((str(i), value) for i, value in enumerate(b.tolist()) if value)))
    of_matrices, constants = _matrix_rows(programme)
    parts += [_coordinates("HCOORD", of_matrices), _coordinates("DCOORD", constants)]
    return ("\n\n".join(filter(None, parts)) + "\n").encode("ascii")


def _scalar_rows(programme: ConeProgramme) -> list[int]:
    """Return the rows that are no entries of matrices, in their order; those of an exponential cone backwards, as the format has them."""
    first = programme.zeros + programme.nonnegative + sum(programme.second_order)
    after = first + sum(n * (n + 1) // 2 for n in programme.semidefinite)
    triples = [after + 3 * cone + place for cone in range(programme.exponential) for place in (2, 1, 0)]
    return [*range(first), *triples]


def _matrix_rows(programme: ConeProgramme) -> tuple[Iterator[tuple[str, float]], Iterator[tuple[str, float]]]:
    """Return the coordinates of the semidefinite rows: those of x, as matrix, column of A, row and column, and the constant ones."""
    places = list(_triangles(programme))
    first = programme.zeros + programme.nonnegative + sum(programme.second_order)
    rows = -sp.csr_array(programme.A[first : first + len(places)])
    constants = programme.b[first : first + len(places)].tolist()

    def entries() -> Iterator[tuple[str, float]]:
        for row, column, value in _entries(rows):
            matrix, i, j = places[row]
            yield f"{matrix} {column} {i} {j}", value if i == j else value / np.sqrt(2.0)

    def others() -> Iterator[tuple[str, float]]:
        for (matrix, i, j), value in zip(places, constants, strict=True):
            if value:
                yield f"{matrix} {i} {j}", value if i == j else value / np.sqrt(2.0)

    return entries(), others()


def _triangles(programme: ConeProgramme) -> Iterator[tuple[int, int, int]]:
    """Yield matrix, row and column of every semidefinite row."""
    for matrix, n in enumerate(programme.semidefinite):
        yield from ((matrix, i, j) for j in range(n) for i in range(j, n))


def _entries(matrix: Any) -> Iterator[tuple[int, int, float]]:
    """Yield row, column and value of a sparse matrix, row by row."""
    found = sp.csr_array(matrix)
    found.sort_indices()
    coordinates = found.tocoo()
    yield from zip(coordinates.row.tolist(), coordinates.col.tolist(), coordinates.data.tolist(), strict=True)


def _coordinates(name: str, entries: Iterable[tuple[str, float]]) -> str:
    """Return a section of coordinates; empty where there are none."""
    lines = [f"{place} {float(value)!r}" for place, value in entries]
    return "\n".join([name, str(len(lines)), *lines]) if lines else ""
