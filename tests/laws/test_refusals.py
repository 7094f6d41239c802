"""What a solver refuses, it refuses by name: options that are none, problems that it cannot take, packages that are not there."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Problem, TaskData, load_registry
from bench_mtl.problems import L1InfHinge, L12Hinge, TraceNormGLM
from bench_mtl.validation.tiny_instances import all_instances

REGISTRY = load_registry()
every_solver = pytest.mark.parametrize("name", sorted(REGISTRY.solvers))

WIDE = TaskData.shared(np.ones((2, 6000)), np.array([[1.0, -1.0], [-1.0, 1.0]]))
SPARSE = TaskData.shared(sp.eye_array(5000, 40000, format="csr"), np.ones((5000, 3)))

#: What no option may be, but that some are true or false, names of any form, or lists that may be empty.
BAD: tuple[Any, ...] = (object(), -1, -1.0, float("nan"), float("inf"), "?", [], True)
ALLOWED = {
    ("conic", "form", "?"), ("conic", "tolerance_options", "[]"), ("admm", "balance", "True"), ("consensus_admm", "balance", "True"),
    ("pegasos", "projection", "True"),
}  # fmt: skip


@every_solver
def test_options_are_refused_by_name(name: str) -> None:
    kind: Any = REGISTRY.solvers[name]
    for option in (
        field.name for field in dataclasses.fields(kind) if field.init and field.repr and field.name != "aim"
    ):  # which a run sets
        for value in BAD:
            if (name, option, str(value)) not in ALLOWED:
                with pytest.raises(InputError, match=rf"\b{option}\b"):
                    kind(**{option: value})


@pytest.mark.parametrize(
    ("name", "problem", "words"),
    [
        ("cone_interior_point", L12Hinge(SPARSE, radius=1.0), "GiB for its factors, above its memory_gib of 4"),
        ("dual_newton", TraceNormGLM(WIDE, penalty=1.0), "a dense system in all 12000 coefficients"),
        ("graph_admm", L12Hinge(WIDE, radius=1.0), "which are too many in l12_hinge: 6000"),
        ("interior_point", L1InfHinge(SPARSE, radius=1.0), "GiB for its factors, above its memory_gib of 4"),
    ],
)
def test_what_would_take_too_much_memory_is_refused(name: str, problem: Problem, words: str) -> None:
    assert words in str(REGISTRY.solver(name).incompatibility(problem))


@every_solver
def test_problems_are_refused_in_a_sentence_that_names_the_solver(name: str) -> None:
    solver = REGISTRY.solver(name)
    reasons = {solver.incompatibility(tiny) for kind in REGISTRY.problems.values() for tiny in all_instances(kind, 0)} - {None}
    assert reasons or name == "auto"
    for reason in reasons:
        assert name in reason.lower() or solver.label in reason.lower(), reason
