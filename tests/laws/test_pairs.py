"""Every solver on every problem that it fits: a covering array of instances in the fast tests, all of them in the slow ones."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pytest
from covering import PAIRED, Case, Pair, covering, traits_of_instances

from bench_mtl import Capability, IterativeSolver, Problem, Solver, load_registry
from bench_mtl.validation.conformance import PAIR_TARGET, check_pair, check_run
from bench_mtl.validation.tiny_instances import all_instances

REGISTRY = load_registry()

#: Options to try besides the defaults, and the gap that a solver must prove where it can do better than the papers'.
VARIANTS: dict[str, list[tuple[dict[str, object], float]]] = {
    **{name: [({}, 1e-8)] for name in ("accelerator_interior_point", "accelerator_pdhg", "interior_point")},
    **{name: [({}, 1e-9)] for name in ("accelerator_gradient", "cone_interior_point", "dual_coordinate_ascent", "dual_newton")},
    **{name: [({}, 1e-9)] for name in ("partial_minimisation", "peer_celer", "peer_cyanure", "peer_skglm", "spectral_gradient")},
    "adaptive_sample_size": [({}, 1e-6), ({"growth": 1.5}, 1e-6), ({"first": 1.0}, 1e-6)],
    "alternating_relationships": [({}, PAIR_TARGET), ({"perturbation": 1e-3}, 1e-3)],
    "auto": [({}, 1e-8), ({"memory_gib": 1e-9}, 1e-6)],
    "conic": [
        *(({"backend": backend}, 1e-7) for backend in ("ECOS", "SCS", "CLARABEL", "HIGHS", "PDLP", "OSQP", "PIQP", "QOCO", "MOREAU")),
        ({"backend": "CVXOPT"}, 1e-6),
        ({"backend": "CVXOPT", "method": "robust"}, 1e-6),
        ({"backend": "SDPA"}, 1e-5),
        *(({"backend": "HIGHS", "method": method}, 1e-7) for method in ("simplex", "ipx", "hipo", "pdlp", "hipdlp")),
        ({"backend": "SCS", "options": {"scale": 0.01}}, 1e-7),
        ({"backend": "CLARABEL", "form": "nuclear_norm"}, 1e-7),
        ({"backend": "SCS", "form": "sdp"}, 1e-7),
    ],
    "working_set": [({}, 1e-8), ({"first": 1}, 1e-8)],
    "admm": [({}, 1e-7), ({"relaxation": 1.0, "penalty": 5.0}, 1e-6)],
    "consensus_admm": [({}, 1e-6), ({"blocks": 5, "workers": 2}, 1e-4)],
    "pdhg": [({}, 1e-8), ({"step_rule": "norm"}, 1e-6)],
    "frank_wolfe_smooth": [({}, 1e-7), ({"variant": "away"}, 1e-7), ({"variant": "plain"}, 1e-2), ({"step_rule": "backtracking"}, 1e-7)],
    "projected_gradient": [
        ({}, 1e-4),
        ({"step_rule": "line_search", "initial_lipschitz": 0.01}, 1e-4),
        *(({"projection": method}, 1e-4) for method in ("newton", "pivot", "sort")),
    ],
    "accelerated_gradient": [
        ({}, 1e-5),
        ({"restart": "gradient"}, 1e-9),
        ({"step_rule": "line_search", "initial_lipschitz": 0.01}, 1e-5),
        ({"restart": "gradient", "projection": "sort"}, 1e-9),
        ({"restart": "gradient", "features": "scaled"}, 1e-9),
    ],
    "exponentiated_gradient": [({}, 1e-4), ({"batch": 5}, PAIR_TARGET)],
    "graph_admm": [({}, 1e-6)],
    "l1_working_set": [({}, 1e-9), ({"first": 1, "growth": 1.2}, 1e-9)],
    "generated_lp": [({}, 1e-9), ({"first": 1, "width": 0.0, "start_gap": 1.0}, 1e-9)],
    "multiboost_group": [({}, 1e-9), ({"columns": 1}, 1e-9)],
    "multiboost_l1": [({}, 1e-9), ({"columns": 1}, 1e-9)],
    "peer_sklearn": [({}, 1e-9), ({"method": "saga"}, 1e-9)],
    "peer_spams": [({}, 1e-9), ({"method": "lars"}, 1e-9)],
    "pegasos": [
        ({}, PAIR_TARGET),
        ({"batch": 5, "averaging": "all"}, PAIR_TARGET),
        ({"projection": False, "averaging": "last"}, PAIR_TARGET),
    ],
    "sparse_online": [({}, 0.02), ({"storage": "tree"}, 0.02)],
    "stochastic_gradient": [({}, 0.03), ({"batch": 10, "averaging": "last"}, 0.03)],
    "stochastic_subgradient": [({"batch": 50}, PAIR_TARGET)],
    "simplex_newton": [({}, 1e-10), ({"largest": 3}, 1e-6)],
    "smoothed_gradient": [({}, 1e-6), ({"step_rule": "lipschitz"}, 1e-3)],
}

#: The least gaps to ask of a solver on a problem: from corner to corner of a round set progress is slow, as 1 / steps, the smoothing of
#: hinges under a round norm has to become tiny (tests/solvers/test_smoothed_gradient.py asks for more, once), and every step of ADMM on
#: scores of classes is an inner solve.
SLOW_PAIRS = {
    ("trace_norm_glm", "frank_wolfe_smooth"): 1e-2,
    ("l12_glm", "frank_wolfe_smooth"): 1e-4,
    ("l12_hinge", "smoothed_gradient"): 1e-2,
    ("l12_hinge", "auto"): 1e-2,  # which is the one before in shards
    ("ridge_hinge", "auto"): PAIR_TARGET,  # which with intercepts averages subgradients
    ("group_boosting", "auto"): 1e-5,  # which of the hinge is admm
    ("l12_hinge", "adaptive_sample_size"): 1e-2,  # which ends as it does
    ("group_boosting", "admm"): 1e-5,
}

#: The least gaps to ask for in seconds, where first-order steps to more take long: the slow tests ask for that.
SOON = {
    **{("ball_hinge", name): 1e-4 for name in ("adaptive_sample_size", "auto", "smoothed_gradient")},
    **{("dirty_model", name): 1e-4 for name in ("accelerated_gradient", "adaptive_sample_size", "auto")},
    **{(name, "adaptive_sample_size"): 1e-4 for name in ("l1inf_glm", "l1inf_hinge")},
    **{("group_boosting", name): 1e-4 for name in ("admm", "auto")},
}

#: Of seconds, though with their defaults: the first is among the fast with other options, the second compiles in every process anew.
LONG = ("group_boosting-consensus_admm", "l1_ball_glm-peer_skglm")

#: Fast with options on more than the first problem: they alone take a loss whose gradient has no Lipschitz constant.
ALSO_FAST = ("group_boosting-projected_gradient-line_search-0.01", "group_boosting-accelerated_gradient-line_search-0.01")


class Duo(NamedTuple):
    """A solver with some options, and a problem of which it fits some instances."""

    problem: str
    variant: str
    solver: Solver
    target: float
    is_fast: bool
    places: tuple[int, ...]
    """Of the instances that it fits, among all."""

    @property
    def name(self) -> str:
        return f"{self.problem}-{self.variant}"

    def instances(self) -> tuple[Problem, ...]:
        return all_instances(REGISTRY.problems[self.problem], 0)

    def asked(self, tiny: Problem, *, in_seconds: bool = False) -> float:
        """Return the gap to ask for: kinks are hard to smooth, and more so with best intercepts. `auto` smooths quantiles, and hinges
        in shards.

        in_seconds : whether to ask for what takes no longer
        """
        return max(self._asked(tiny, in_seconds), SOON.get((self.problem, self.solver.name), 0.0) if in_seconds else 0.0)

    def _asked(self, tiny: Problem, in_seconds: bool) -> float:
        solver: Any = self.solver
        if (self.problem, self.variant) == ("l1inf_hinge", "conic-OSQP"):  # whose ADMM ends short of more on one of its linear programmes
            return 2e-3
        if self.variant == "conic-HIGHS-hipo" and "squares" in next(iter(tiny.conic_forms.values())):
            return 1e-3  # on quadratic programmes it ends at 1e-6 to 1e-4, whatever it is asked for
        is_smoothed = Capability.SMOOTH not in tiny.offers and (tiny.is_in_shards or tiny.name.endswith("_glm"))
        if solver.name != "smoothed_gradient" and not (solver.name == "auto" and (solver.memory_gib < 1e-6 or is_smoothed)):
            return self.target
        if not any(form.has_intercept for form in tiny.make_forms()):
            return max(self.target, 1e-6)
        return max(self.target, 1e-2 if in_seconds and tiny.is_in_shards else 1e-4)

    def cases(self) -> Iterator[Case]:
        traits = traits_of_instances(REGISTRY.problems[self.problem], 0)
        for place in self.places:
            yield Case(self.problem, self.solver.name, self.variant, place, **vars(traits[place]))


@lru_cache(maxsize=1)
def duos() -> tuple[Duo, ...]:
    """Every solver with its defaults on every problem, and with other options on the first problem that they fit. The rest is slow.

    Of the generic solvers, all that are soon done count as defaults.
    """
    return tuple(_duos())


def _duos() -> Iterator[Duo]:
    seen: set[str] = set()
    solvers = [
        ("-".join([name, *map(str, options.values())]), REGISTRY.solver(name, options), options, target)
        for name in REGISTRY.solvers
        for options, target in VARIANTS.get(name, [({}, PAIR_TARGET)])
    ]
    for problem_name, problem in REGISTRY.problems.items():
        for variant, solver, options, target in solvers:
            places = tuple(k for k, tiny in enumerate(all_instances(problem, 0)) if solver.incompatibility(tiny) is None)
            if places:
                is_default = not options or (set(options) == {"backend"} and options["backend"] != "SCS")
                name = f"{problem_name}-{variant}"
                is_fast = name in ALSO_FAST or (name not in LONG and (is_default or variant not in seen))
                seen.add(variant)
                least = max(target, SLOW_PAIRS.get((problem_name, solver.name), 0.0))
                yield Duo(problem_name, variant, solver, least, is_fast, places)


@lru_cache(maxsize=1)
def chosen() -> dict[str, list[int]]:
    """Return the instances of every fast duo that cover what all of them have."""
    found: dict[str, list[int]] = {duo.name: [] for duo in duos() if duo.is_fast}
    for case in covering(case for duo in duos() if duo.is_fast for case in duo.cases()):
        found[f"{case.problem}-{case.variant}"].append(case.place)
    return found


#: The first problem of every solver with its options, which other kernels are to solve, too.
FIRST = {duo.variant: duo.name for duo in reversed(duos()) if duo.is_fast}


@pytest.mark.parametrize(
    "duo",
    [pytest.param(duo, id=duo.name, marks=[pytest.mark.numerics] * (duo.name in FIRST.values())) for duo in duos() if duo.is_fast],
)
def test_solver_keeps_its_promises(duo: Duo) -> None:
    """It proves its target by iterates that are counted, and reproducible, and goes on from points and states."""
    instances = [duo.instances()[place] for place in chosen()[duo.name]]
    certificates = [check_run(tiny, duo.solver, target=duo.asked(tiny, in_seconds=True)) for tiny in instances]
    if not isinstance(duo.solver, IterativeSolver):  # whose iterates are compared one by one
        assert check_pair(instances[0], duo.solver, target=duo.asked(instances[0])) == certificates[0]


@pytest.mark.slow
@pytest.mark.parametrize("duo", [pytest.param(duo, id=duo.name) for duo in duos()])
def test_every_instance_with_every_option(duo: Duo) -> None:
    """The whole product, of which the test above takes a part; of the instances in shards three."""
    fitting = [duo.instances()[place] for place in duo.places]
    sharded = [tiny for tiny in fitting if tiny.is_in_shards]
    for tiny in [*(tiny for tiny in fitting if not tiny.is_in_shards), *(_three(sharded) if sharded else [])]:
        certificate = check_run(tiny, duo.solver, target=duo.asked(tiny), steps=50)
        if not isinstance(duo.solver, IterativeSolver):
            assert check_pair(tiny, duo.solver, target=duo.asked(tiny)) == certificate


def _three(found: list[Problem]) -> list[Problem]:
    return [found[0], found[len(found) // 2], found[-1]]


def test_the_chosen_instances_cover_all_pairs_of_properties() -> None:
    """And so do those of the fast duos of what any solver fits at all, but for options and what is long."""
    fast = {pair for duo in duos() if duo.is_fast for case in duo.cases() for pair in case.pairs}
    held = {pair for duo in duos() if duo.is_fast for case in duo.cases() if case.place in chosen()[duo.name] for pair in case.pairs}
    assert held == fast
    assert {pair[0::2] for pair in held} == set(PAIRED)
    assert all(chosen().values())

    def without_options(pairs: set[Pair]) -> set[Pair]:
        return {pair for pair in pairs if "variant" not in pair}

    possible = {pair for duo in duos() if duo.name not in LONG for case in duo.cases() for pair in case.pairs}
    assert without_options(possible) == without_options(held)


def test_every_solver_that_is_installed_fits_something() -> None:
    assert {duo.solver.name for duo in duos()} == {name for name in REGISTRY.solvers if REGISTRY.solver(name).version != "not installed"}
