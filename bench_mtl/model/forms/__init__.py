"""What problems are made of, for solvers that need more than operators: the data themselves, frozen."""

from bench_mtl.model.forms.groups import ROW_NORMS, GroupForm, positive_dual_norms
from bench_mtl.model.forms.hinges import Hinges, hinges_under
from bench_mtl.model.forms.linear import RIDGE_HINGES, SPARSE_PLUS_LOW_RANK, LinearForm, loss_under, under_ridge, under_rows_and_entries
from bench_mtl.model.forms.simplices import CurvedForm, SimplexForm

__all__ = [
    "RIDGE_HINGES", "ROW_NORMS", "SPARSE_PLUS_LOW_RANK", "CurvedForm", "GroupForm", "Hinges", "LinearForm", "SimplexForm", "hinges_under",
    "loss_under", "positive_dual_norms", "under_ridge", "under_rows_and_entries",
]  # fmt: skip
