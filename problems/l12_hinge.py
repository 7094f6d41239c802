"""Multi-task hinge classification with an l1,2 constraint or penalty."""

from __future__ import annotations

from bench_mtl.model.norm_problems import NormHinge
from bench_mtl.model.norms import L12


class L12Hinge(NormHinge):
    """Joint feature selection for m classification tasks by the l1,2 norm, the group lasso's.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  sum_j ||W_j||_2 <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k) + lambda sum_j ||W_j||_2

    where W_j is a row (a feature's coefficients in all tasks) and s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``).
    With ``intercept`` the first sum is the least over numbers b_k that are added to all x_ki.w_k.

    Points, dual points, parameters and errors are those of `l1inf_hinge`, with the longest row ||G||_{inf,2} = max_j ||G_j||_2 in place of
    ||G||_{inf,1}.

    References
    ----------
    Yuan, Lin, Journal of the Royal Statistical Society B 68(1), 2006 (group lasso); Obozinski, Taskar, Jordan, Statistics and Computing
    20(2), 2010 (for many tasks); the rival norm of Quattoni, Carreras, Collins, Darrell, ICML 2009.
    """

    name = "l12_hinge"
    norm_type = L12
    conic_forms = L12.models
