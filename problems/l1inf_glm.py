"""Multi-task regression or classification with an l1,inf constraint or penalty."""

from __future__ import annotations

from bench_mtl.model.norm_problems import NormGLM
from bench_mtl.model.norms import L1Inf


class L1InfGLM(NormGLM):
    """Least squares or logistic regression for m tasks that select their features together.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j max_k |W_jk| <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki) + lambda sum_j max_k |W_jk|

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))
        quantile:  loss(t, y) = max(tau (y - t), (tau - 1) (y - t))

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``). With ``intercept`` the first sum is the least over numbers b_k that
    are added to all x_ki.w_k; the r of every task add up to 0 then.

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the predictions,
    s_k included. With G = (X_k^T r_k)_k and ||G||_{inf,1} = max_j sum_k |G_jk| the bounds are, for the best c >= 0,

        squared:   D(c) = c <r, y> - c^2/2 sum_ki r_ki^2 / s_k - c C ||G||_{inf,1}
        logistic:  D(c) = sum_ki s_k H(c a_ki / s_k) - c C ||G||_{inf,1},   c <= 1,   H(p) = -p log p - (1-p) log(1-p)
        quantile:  D(c) = c <r, y> - c C ||G||_{inf,1},   r clipped to [(tau - 1) s_k, tau s_k],   c <= 1

    with a = r y clipped to [0, s_k]. With a penalty the same without the last term, for c <= lambda / ||G||_{inf,1} (so it is void for
    lambda = 0).

    With factors g_j, W >= 0 and a ridge mu the penalty is lambda sum_j g_j max_k |W_jk| + mu/2 ||W||_F^2. Then ||G||_{inf,1} is
    max_j sum_k |G_jk| / g_j, of positive G_jk alone where W >= 0; and with a ridge c <= 1, and ||G - U||_F^2 / (2 mu) is taken off c times,
    for a U with ||U||_{inf,1} <= lambda.

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    loss : "squared", "logistic", "huber" ("huber:0.5" for the one with delta = 0.5, which is 1 otherwise) or "quantile" ("quantile:0.9" for
        the one with tau = 0.9, which is 0.5 otherwise, that of medians)
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0, ||G||_{inf,1} of the residuals at W = 0
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`
    feature_factors : d numbers g_j, 0 or from 1e-9 to 1e9, with a penalty; 0, with a ridge only, for a feature that is not penalised
    nonnegative : whether W >= 0
    ridge : mu >= 0, with a penalty

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1 for the logistic loss, a negative or missing radius or penalty, both given, an unknown loss
        or reduction, factors or a ridge with a radius, a factor of 0 without a ridge.

    References
    ----------
    Turlach, Venables, Wright, Technometrics 47(3), 2005 (least squares, constrained); Quattoni, Carreras, Collins, Darrell, ICML 2009,
    section 2 (any convex loss); Negahban, Wainwright, IEEE Transactions on Information Theory 57(6), 2011 (least squares, penalised).
    """

    name = "l1inf_glm"
    norm_type = L1Inf
    conic_forms = L1Inf.models
