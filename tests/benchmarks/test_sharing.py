"""The table of weak learners at equal error, from fits made by hand."""

import pandas as pd

from benchmarks.sharing import at_equal_error


def fit(norm: str, learners: float, error: float, gap: float = 1e-4) -> dict[str, object]:
    measured = {"features used": learners, "classes a feature": 2.0, "held-out error": error}
    return {"data": "made up", "norm": norm, "nu / max": 1.0 / learners, "relative gap": gap, "seconds": 1.0, **measured}


def test_the_sparsest_fit_that_reaches_what_all_norms_reach():
    found = pd.DataFrame(
        [
            *(fit("l12", 5, 0.3), fit("l12", 10, 0.15), fit("l12", 20, 0.05)),
            *(fit("l1inf", 8, 0.2, gap=0.1), fit("l1inf", 12, 0.1)),
            *(fit("l1", 30, 0.2), fit("l1", 40, 0.25), fit("l1", 50, 0.1), fit("l1", 60, 0.1)),
        ]
    )
    table = at_equal_error(found).set_index("norm")
    assert set(table["error"]) == {0.1}  # l12 does better, the others do not
    assert dict(table["weak learners"]) == {"l12": 20, "l1inf": 12, "l1": 50}
    assert dict(table["its error"]) == {"l12": 0.05, "l1inf": 0.1, "l1": 0.1}
    assert set(table["unproven"]) == {"1 of 9"}
