"""Multi-task regression or classification with an l1,2 constraint or penalty: smooth losses."""

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

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the predictions,
    s_k included. With G = (X_k^T r_k)_k and its longest row ||G||_{inf,2} = max_j ||G_j||_2 the bounds are those of `l1inf_glm` with this
    norm in place of ||G||_{inf,1}.

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    loss : "squared" or "logistic"
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0, ||G||_{inf,2} of the residuals at W = 0
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1 for the logistic loss, a negative or missing radius or penalty, both given, an unknown loss
        or reduction.

    References
    ----------
    Yuan, Lin, Journal of the Royal Statistical Society B 68(1), 2006 (group lasso); Meier, van de Geer, Buhlmann, the same journal 70(1),
    2008 (logistic loss); Obozinski, Taskar, Jordan, Statistics and Computing 20(2), 2010 (for many tasks).
    """

    name = "l12_glm"
    norm_type = L12
    conic_forms = L12.models
