"""What problems are made of, for solvers that need more than operators: the data themselves, frozen."""

from bench_mtl.model.forms.groups import ROW_NORMS, GroupForm, positive_dual_norms
from bench_mtl.model.forms.hinges import BallForm, HingeForm, Hinges, NormHingeForm
from bench_mtl.model.forms.linear import L1Form, L1InfForm, RelationshipForm, RidgeForm, SplitForm
from bench_mtl.model.forms.norms import NormForm
from bench_mtl.model.forms.simplices import CurvedForm, SimplexForm

__all__ = [
    "ROW_NORMS",
    "BallForm",
    "CurvedForm",
    "GroupForm",
    "HingeForm",
    "Hinges",
    "L1Form",
    "L1InfForm",
    "NormForm",
    "NormHingeForm",
    "RelationshipForm",
    "RidgeForm",
    "SimplexForm",
    "SplitForm",
    "positive_dual_norms",
]
