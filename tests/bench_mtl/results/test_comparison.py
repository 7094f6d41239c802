"""Two results side by side: what is paired, what is refused, and when a verdict is reached."""

import numpy as np
import pytest
from hand_made import ROOT

from bench_mtl.core.errors import InputError
from bench_mtl.results import Store
from bench_mtl.results.comparison import FEWEST_PAIRS, FLOOR_SECONDS, Verdict, compare, verdict_of
from bench_mtl.stats import Interval


def noisy(factor=1.0, *, noise=0.05, pairs=20, seed=0, **run):
    """So many seeds, solved in about `factor` seconds."""
    rng = np.random.default_rng(seed)
    return [{"seed": i, "seconds": factor * float(np.exp(noise * rng.standard_normal())), **run} for i in range(pairs)]


@pytest.fixture
def both(make_results):
    """Compares two lists of runs."""

    def compared(old, new, **options):
        return compare(make_results("a", old), make_results("b", new), **options)

    return compared


def verdicts(comparison):
    return [cell.verdict for cell in comparison.cells]


@pytest.mark.parametrize("name", ["quick", "scene", "singer-mnist"])
def test_a_result_and_itself_are_the_same(name):
    folder = ROOT / "reports" / name
    with Store.open(folder) as store:
        rows = int((store.runs()["clock"] != "traced").sum())
    comparison = compare(folder, folder)
    assert (comparison.identical, comparison.has_regressed, comparison.unpaired) == (True, False, ((), ()))
    assert (comparison.pairs, comparison.runs) == (rows, (rows, rows))
    names = ("changes", "machine", "information", "limits", "other_data", "contradictory")
    assert [name for name in names if getattr(comparison, name)] == []


def test_a_slowdown_of_30_percent_under_noise_of_5_is_significant_and_the_other_way_round_a_speedup(make_results):
    a, b = make_results("a", noisy(seed=1)), make_results("b", noisy(1.3, seed=2))
    there, back = compare(a, b), compare(b, a)
    assert (verdicts(there), verdicts(back)) == ([Verdict.SLOWER] * 3, [Verdict.FASTER] * 3)
    assert there.has_regressed
    assert not back.has_regressed
    assert there.cells[0].ratio.value == pytest.approx(1.3, rel=0.05)
    for one, other in zip(there.cells, back.cells, strict=True):
        assert one.ratio.value * other.ratio.value == pytest.approx(1.0)
        assert one.ratio.low * other.ratio.high == pytest.approx(1.0)
    accepted = compare(a, b, threshold=0.5)
    assert (verdicts(accepted), accepted.has_regressed) == ([Verdict.SAME] * 3, False)
    for threshold in (-0.1, float("nan")):
        with pytest.raises(InputError, match="threshold must be"):
            compare(a, b, threshold=threshold)


def test_verdicts_follow_the_interval():
    intervals = {
        (1.11, 1.5): Verdict.SLOWER, (1.05, 1.5): Verdict.UNCLEAR, (0.95, 1.09): Verdict.SAME, (1.1, 1.1): Verdict.SAME,
        (0.8, 1.05): Verdict.UNCLEAR, (0.5, 0.9): Verdict.FASTER, (0.5, 2.0): Verdict.UNCLEAR,
    }  # fmt: skip
    for ends, expected in intervals.items():
        assert verdict_of(Interval(1.0, *ends, FEWEST_PAIRS), 0.1) == expected
        assert verdict_of(Interval(1.0, *ends, FEWEST_PAIRS - 1), 0.1) == Verdict.TOO_FEW


def test_times_of_zero_and_of_less_than_a_clock_tells_count_as_the_floor(both):
    comparison = both(noisy(0.0), noisy(FLOOR_SECONDS / 2))
    assert [(cell.ratio.value, cell.verdict) for cell in comparison.cells] == [(1.0, Verdict.SAME)] * 3
    assert not comparison.identical


def test_a_lost_verified_is_a_regression_and_enters_no_ratio_and_a_gained_one_is_none(make_results):
    new = noisy()
    new[3] = {"seed": 3, "seconds": 1.0, "gap": 5e-5, "status": "timeout"}
    a, b = make_results("a", noisy()), make_results("b", new)
    lost, gained = compare(a, b), compare(b, a)
    assert (lost.lost, lost.has_regressed, lost.groups[0].verified) == (("hinge seed 3 | pg",), True, (20, 19))
    assert [(cell.lost, cell.gained, cell.ratio.instances) for cell in lost.cells] == [(0, 0, 20), (0, 0, 20), (1, 0, 19)]
    assert [(change.old, change.new, change.cases) for change in gained.changes] == [("timeout", "verified", ("hinge seed 3 | pg",))]
    assert ([cell.gained for cell in gained.cells], gained.has_regressed) == ([0, 0, 1], False)


def test_cases_are_paired_by_what_they_are_not_by_versions_labels_or_the_order_of_keys(make_results):
    one = {"data": {"name": "x", "rows": 3}, "options": {"a": 1, "b": 2}, "seconds": 1.0}
    other = {**one, "data": {"rows": 3, "name": "x"}, "options": {"b": 2, "a": 1}, "label": "renamed", "version": "2.0", "fingerprint": ""}
    comparison = compare(make_results("a", [one], targets=(1e-2, 1e-6)), make_results("b", [other], targets=(1e-4, 1e-6)))
    assert (comparison.pairs, comparison.groups[0].solver, comparison.other_data, comparison.targets) == (1, "renamed", (), (1e-6,))


@pytest.mark.parametrize(
    "change",
    [
        {"family": "else"}, {"data": {"name": "else"}}, {"parameters": {"radius": 2.0}}, {"seed": 7}, {"seed": None}, {"solver": "else"},
        {"options": {"a": 1}}, {"repetition": 1},
    ],
)  # fmt: skip
def test_other_cases_are_not_paired(both, change):
    same, other = {"seconds": 1.0, "problem": "same"}, {"seconds": 1.0}
    comparison = both([same, other], [same, other | change])
    assert (comparison.pairs, [len(cases) for cases in comparison.unpaired]) == (1, [1, 1])
    assert comparison.unpaired[0] == ("hinge seed 0 | pg",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environment": {"processor": "slow one"}}, r"processor \(quick one in A, slow one in B\)"),
        ({"environment": {"processor_details": "AVX2"}}, r"processor details \(AVX-512 in A, AVX2 in B\)"),
        ({"environment": {"memory_gib": 32.0}}, r"memory \(GiB\) \(16.0 in A, 32.0 in B\)"),
        ({"environment": {"isolation": "inline"}}, r"isolation \(process in A, inline in B\)"),
        ({"threads": 2}, r"threads \(1 in A, 2 in B\)"),
    ],
)
def test_other_conditions_are_refused_unless_asked_for(make_results, change, words):
    old = {"isolation": "process", "processor_details": "AVX-512"}
    a, b = make_results("a", noisy(environment=old)), make_results("b", noisy(**change))
    with pytest.raises(InputError, match=f"do not compare, for they differ in {words}: .* --anyway"):
        compare(a, b)
    assert len(compare(a, b, anyway=True).machine) == 1


def test_neither_a_crashed_run_nor_a_little_less_memory_nor_what_one_has_not_recorded_is_another_machine(both):
    old, new = noisy(), noisy(environment={"memory_gib": 15.9, "slots": 1})
    old[0] = new[0] = {"seed": 0, "status": "crashed"}
    new[0] = {**new[0], "environment": {"processor": "the one that waited"}}
    comparison = both(old, new)
    assert not comparison.machine
    assert [(entry.what, entry.old, entry.new) for entry in comparison.information] == [("slots", "not recorded", "1")]


def test_versions_limits_and_other_data_are_listed(both):
    new = noisy(environment={"bench_mtl": "0.2.0", "packages": {"numpy": "2.1", "ecos": "2.0"}}, version="1.1", limit=30.0)
    new[4]["fingerprint"] = "g"
    comparison = both(noisy(), new)
    assert {(entry.what, entry.old, entry.new) for entry in comparison.information} == {
        ("bench_mtl", "0.1.0", "0.2.0"), ("ecos", "none", "2.0"), ("numpy", "2.0", "2.1"), ("solver pg", "1.0", "1.1"),
    }  # fmt: skip
    assert [(entry.what, entry.old, entry.new, entry.pairs) for entry in comparison.limits] == [("seconds", "60.0", "30.0", 20)]
    assert (comparison.other_data, comparison.has_regressed) == (("hinge seed 4 | pg",), False)


def test_proofs_that_contradict_each_other_are_left_out_and_are_no_success(both):
    """All of the instance goes: the solver that got nowhere on it solved the other problem too."""
    old = noisy() + noisy(solver="scs")
    new = noisy() + noisy(solver="scs")
    new[2]["optimum"] = 1.01  # its lower bound is above what A has reached
    del new[22]["seconds"]
    comparison = both(old, new)
    assert comparison.contradictory == ("hinge seed 2 | pg", "hinge seed 2 | scs")
    assert (comparison.pairs, comparison.lost, comparison.has_regressed) == (38, (), True)


@pytest.mark.parametrize("optimum", [1.0 + 1e-10, 1.0 - 1e-10])
def test_rounding_is_no_contradiction(both, optimum):
    assert both(noisy(gap=0.0), noisy(gap=0.0, optimum=optimum)).contradictory == ()


def test_a_result_that_contradicts_itself_is_no_contradiction_with_itself(make_results):
    a, b = make_results("a", noisy() + noisy(solver="liar", optimum=1.5)), make_results("b", noisy())
    assert compare(a, a).identical
    assert compare(a, b).contradictory == ()
    with pytest.raises(InputError, match=r"did not solve the same problems: .* in each of the 20 cases"):
        compare(b, a)  # a bound that is false now


def test_of_a_case_with_two_rows_the_later_counts(make_results):
    """As a store holds them while a suite's limits have changed and nobody has planned it again."""
    comparison = compare(make_results("a", [{"seconds": 1.0, "limit": 10.0}, {"seconds": 2.0}]), make_results("b", [{"seconds": 4.0}]))
    assert comparison.pairs == 1
    assert comparison.cells[0].ratio.value == pytest.approx(2.0)


def test_comparing_needs_results_with_a_case_in_common(make_results, tmp_path):
    others = make_results("others", noisy(solver="else"))
    for folder, words in (
        (tmp_path / "nowhere", "no results in"), (make_results("empty", []), "no finished run"), (others, "no case in common")
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            compare(make_results("a", noisy()), folder)
