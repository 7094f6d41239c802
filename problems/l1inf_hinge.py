"""Multi-task hinge classification with an l1,inf constraint or penalty."""

from __future__ import annotations

from bench_mtl.model.norm_problems import NormHinge
from bench_mtl.model.norms import L1Inf


class L1InfHinge(NormHinge):
    """Joint feature selection for m classification tasks.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  sum_j max_k |W_jk| <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k) + lambda sum_j max_k |W_jk|

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``). With ``intercept`` the first sum is the least over numbers b_k that
    are added to all x_ki.w_k.

    A point is W, d x m. A dual point is a, shaped like the labels, with a_ki in [0, s_k]; anything else is clipped. With an
    intercept sum_i a_ki y_ki = 0 besides, which the heavier sign is scaled down to.
    With G = sum_i a_ki y_ki x_ki (d x m) the bound is

        constrained:  D(a) = sum a - C ||G||_{inf,1}
        penalised:    D(a) = sum a, after scaling a by min(1, lambda / ||G||_{inf,1})

    Parameters
    ----------
    data : TaskData with labels -1/+1; labels 0/1 are converted, with a warning
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : other labels, a negative or missing radius or penalty, both given, an unknown reduction.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, ICML 2009, section 2 (mean loss, constrained).
    """

    name = "l1inf_hinge"
    norm_type = L1Inf
    aliases = {"loss": "reduction"}
    conic_forms = {"lp": frozenset({"linear"})}
