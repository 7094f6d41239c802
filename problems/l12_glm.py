"""Multi-task regression or classification with an l1,2 constraint or penalty."""

from __future__ import annotations

from bench_mtl.model.norm_problems import NormGLM
from bench_mtl.model.norms import L12


class L12GLM(NormGLM):
    """Least squares or logistic regression for m tasks that select their features together by the l1,2 norm, the group lasso's.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j ||W_j||_2 <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki) + lambda sum_j ||W_j||_2

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where W_j is a row (a feature's coefficients in all tasks) and s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``).

    Points, dual points, parameters and errors are those of `l1inf_glm`, with the longest row ||G||_{inf,2} = max_j ||G_j||_2 in place of
    ||G||_{inf,1}.

    References
    ----------
    Yuan, Lin, Journal of the Royal Statistical Society B 68(1), 2006 (group lasso); Meier, van de Geer, Buhlmann, the same journal 70(1),
    2008 (logistic loss); Obozinski, Taskar, Jordan, Statistics and Computing 20(2), 2010 (for many tasks).
    """

    name = "l12_glm"
    norm_type = L12
    conic_forms = L12.models
