"""Suite files: what they may say, what is refused, and how they expand."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import available_processors
from bench_mtl.core.version import __version__
from bench_mtl.engine import suite as suite_module
from bench_mtl.engine import suite_file
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, Suite, expand, identified
from bench_mtl.engine.suite_file import parse_suite, read_suite, shipped_suites

REGISTRY = load_registry()

PROBLEM = """
[[problems]]
name = "l1inf_hinge"
data = { name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5 }
parameters = { radius = 1.0 }

"""
SMALL = PROBLEM + '[[solvers]]\nname = "conic"\n'


def parsed(text: str) -> Suite:
    return parse_suite(tomllib.loads(text), text)


def cases_of(text: str) -> list[Case]:
    return expand(parsed(text), REGISTRY)


def changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


def of_problem(line: str) -> str:
    """With one more line in its problem's table."""
    return changed("\n[[solvers]]", f"{line}\n[[solvers]]")


def test_defaults() -> None:
    suite = parsed(SMALL)
    assert suite.targets == (1e-2, 1e-4, 1e-6)
    assert (suite.repetitions, suite.seeds, suite.threads, suite.limits.seconds) == (1, (0,), 1, 60.0)
    (case,) = expand(suite, REGISTRY)
    assert (case.target, case.solver_label, case.instance.seed, case.instance.label) == (1e-6, "clarabel", 0, "l1inf_hinge synthetic_l1inf")
    assert [case.threads for case in cases_of('threads = "all"\n' + SMALL)] == [available_processors()]


@pytest.mark.parametrize("name", shipped_suites())
def test_shipped_suites_are_valid_and_say_what_they_are(name: str) -> None:
    suite = read_suite(name)
    assert suite.name == name
    assert suite.description
    assert expand(suite, REGISTRY)


def test_grids_seeds_and_repetitions_multiply() -> None:
    swept = changed("parameters = { radius = 1.0 }", "grid = { radius = [1.0, 2.0] }")
    cases = cases_of(f'repetitions = 2\nseeds = [1, 2, 3]\n{swept}grid = {{ backend = ["ECOS", "SCS"] }}')
    assert len(cases) == 2 * 3 * 2 * 2
    assert len({case.key for case in cases}) == len(cases)
    assert {case.solver_label for case in cases} == {"ecos", "scs"}
    assert {case.instance.label for case in cases} == {f"l1inf_hinge synthetic_l1inf radius={radius}" for radius in (1.0, 2.0)}
    (case,) = cases_of("seeds = [1, 2, 3]\n" + changed('"synthetic_l1inf", tasks = 2, features = 4, examples = 5', '"digits"'))
    assert case.instance.seed is None, "data without randomness have no seeds"


def test_data_can_be_swept() -> None:
    text = changed("examples = 5 }", "preprocess = 'none' }\ndata_grid = { examples = [5, 10, 20] }")
    cases = cases_of(text)
    assert [case.instance.data["examples"] for case in cases] == [5, 10, 20]
    assert [case.instance.label for case in cases] == [f"l1inf_hinge synthetic_l1inf examples={n}" for n in (5, 10, 20)]
    assert len({case.instance.key for case in cases}) == 3
    assert cases[1].instance.build(REGISTRY, None).dimensions["n"] == 20
    alone = cases_of(changed("examples = 5", "examples = 10, preprocess = 'none'"))
    assert alone[0].key == cases[1].key  # a sweep makes the cases that its entries alone would make


def test_fresh_seeds_come_from_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn_at(commit: str | None) -> tuple[int, ...]:
        monkeypatch.setattr(suite_file, "current_commit", lambda: commit)
        return parsed("fresh_seeds = 3\n" + SMALL).seeds

    first = drawn_at("0123456789ab")
    assert first == drawn_at("0123456789ab")
    assert len({*first, *drawn_at("0123456789ac"), *drawn_at(None)}) == 9  # a package that was installed has its version alone
    assert suite_file.fresh_seeds(5, "0123456789ab")[:3] == first
    assert tuple(case.instance.seed for case in cases_of("fresh_seeds = 2\n" + SMALL)) == suite_file.fresh_seeds(2, __version__)


def test_the_key_depends_on_everything_that_may_change_the_outcome() -> None:
    base = cases_of(SMALL)[0].key
    changes = [
        changed("tasks = 2", "tasks = 3"),
        changed("radius = 1.0", "radius = 1.5"),
        SMALL + 'options = { backend = "ECOS" }\n',
        "targets = [1e-3]\n" + SMALL,
        "targets = [1e-3, 1e-6]\n" + SMALL,
        "threads = 2\n" + SMALL,
        "seeds = [1]\n" + SMALL,
        "limits = { seconds = 5 }\n" + SMALL,
    ]
    keys = {cases_of(text)[0].key for text in changes}
    assert len(keys | {base}) == len(changes) + 1
    assert cases_of('name = "other"\ndescription = "x"\n' + SMALL)[0].key == base


def test_an_alias_is_the_same_case_as_the_long_form() -> None:
    (case,) = cases_of(changed('"conic"', '"ecos"'))
    (long,) = cases_of(SMALL + 'options = { backend = "ECOS" }\n')
    assert case == long
    assert case.key == long.key
    assert (case.solver, case.solver_label, case.options) == ("conic", "ecos", {"backend": "ECOS"})
    swept = cases_of(changed('"conic"', '"HiGHS"') + 'grid = { method = ["ipx", "simplex"] }\n')
    assert [case.options for case in swept] == [{"method": method, "backend": "HIGHS"} for method in ("ipx", "simplex")]


def test_a_solver_can_have_repetitions_and_problems_of_its_own() -> None:
    cases = cases_of("repetitions = 3\n" + SMALL + '\n[[solvers]]\nname = "pdhg"\nrepetitions = 1\n')
    counts = Counter((case.solver, case.target) for case in cases if not case.traced)
    assert [count for (solver, _), count in counts.items() if solver == "pdhg"] == [1, 1, 1]
    assert [count for (solver, _), count in counts.items() if solver != "pdhg"] == [3]
    assert len({case.key for case in cases}) == len(cases)
    second = PROBLEM.replace("[[problems]]", '[[problems]]\nlabel = "second"')
    assert [case.instance.label for case in cases_of(second + SMALL + 'problems = ["second"]\n')] == ["second"]
    alike = cases_of(second + SMALL + 'problems = ["second"]\n\n[[solvers]]\nname = "scs"\nproblems = ["l1inf_hinge synthetic_l1inf"]\n')
    assert [case.instance.label for case in identified(alike, None)] == ["second", "l1inf_hinge synthetic_l1inf"]


def test_an_iterative_solver_is_run_to_every_target_by_itself_and_once_for_its_curve() -> None:
    text = "repeat_fastest = 3\n" + SMALL + '\n[[solvers]]\nname = "pdhg"\nrepetitions = 2\n'
    suite = parsed("curves = true\n" + text)
    cases = expand(suite, REGISTRY)
    assert suite.repeat_fastest == 3
    assert len({case.key for case in cases}) == len(cases)
    assert [(case.target, case.targets) for case in cases if case.solver == "conic"] == [(1e-6, (1e-2, 1e-4))]
    timed = [(case.target, case.targets, case.repetition) for case in cases if case.solver == "pdhg" and not case.traced]
    assert timed == [(target, (), repetition) for repetition in range(2) for target in (1e-2, 1e-4, 1e-6)]
    assert [(case.target, case.targets, case.repetition) for case in cases if case.traced] == [(1e-6, (1e-2, 1e-4), 0)]
    assert cases_of(text) == [case for case in cases if not case.traced]


def of_shards(workers: int) -> str:
    data = f'file = "a/shards.json", workers = {workers}'
    return "threads = 2\n" + changed('name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5', data)


def labelled(label: str, what: str) -> str:
    """Return the table of a problem with a label and parameters of its own."""
    return PROBLEM.replace("[[problems]]", f'[[problems]]\nlabel = "{label}"').replace("parameters = { radius = 1.0 }", what)


NUMBER = r"must be a whole number of at least 1( and at most \d+)?, not"
TWICE = r"two cases are the same run: .*'{}' and '{}'"
LONG = "x" * 201

#: Suites, and what is said of them: as they are read, expanded to cases, or as the problem of the first case is built.
BAD = [
    # Keys
    ("repetition = 2\n" + SMALL, "unknown key in the suite 'repetition': did you mean 'repetitions'"),
    (changed("parameters", "paramters"), r"unknown key in \[\[problems\]\] entry 1 'paramters': did you mean 'parameters'"),
    (SMALL[SMALL.index("[[solvers]]") :], "^the suite needs the key 'problems'$"),
    (changed('name = "conic"', 'nme = "conic"'), r"\[\[solvers\]\] entry 1 needs the key 'name', and has 'nme': did you mean 'name'\?"),
    ("solvers = []\n" + PROBLEM, r"\[\[solvers\]\] must have at least one entry"),
    (of_problem("data_grid = { exmaples = [5] }"), "unknown key for data 'synthetic_l1inf' 'exmaples': did you mean 'examples'"),
    # Values
    (changed('"conic"', "7"), "'name' in .* must be a string, not 7"),
    (SMALL + "\nrepetitions = 0\n", f"repetitions {NUMBER} 0"),
    ("repetitions = true\n" + SMALL, "'repetitions' in the suite must be a whole number, not True"),
    ("repetitions = 10001\n" + SMALL, "repetitions must be a whole number of at least 1 and at most 10000, not 10001"),
    ('threads = "many"\n' + SMALL, "threads must be a whole number"),
    ("targets = []\n" + SMALL, "targets must name at least one"),
    ("targets = [0.0]\n" + SMALL, "targets must be above 0 and at most 1"),
    (f"targets = {[0.1] * 51}\n" + SMALL, "targets must be at most 50, not 51"),
    ("seeds = []\n" + SMALL, "seeds must name at least one seed"),
    ("seeds = [9007199254740993]\n" + SMALL, "seeds must be a whole number of at least 0 and at most 9007199254740992"),
    (f"seeds = {list(range(10_001))}\n" + SMALL, "seeds has 10001 entries, and 10000 are allowed"),
    ("seeds = [1]\nfresh_seeds = 2\n" + SMALL, "seeds and fresh_seeds exclude each other"),
    ("limits = { seconds = -1 }\n" + SMALL, "seconds in .* above 0"),
    ("limits = { iterations = 0 }\n" + SMALL, "iterations in .* at least 1"),
    (of_problem("data_grid = { tasks = [3] }"), "data_grid key 'tasks' .* is in 'data' as well"),
    (of_problem("data_grid = { file = ['a'] }"), "data_grid key 'file' .* cannot be swept"),
    (SMALL + "grid = { backend = [] }\n", "grid key 'backend' .* non-empty list"),
    (of_problem("grid = { radius = [2.0] }"), "grid key 'radius' .* is in 'parameters' as well"),
    (SMALL + "options = { backend = 'ECOS' }\ngrid = { backend = ['SCS'] }\n", "grid key 'backend' .* is in 'options' as well"),
    (of_problem("seeds = []"), r"'seeds' in \[\[problems\]\] entry 1 must be a non-empty list"),
    (SMALL + "problems = []\n", r"'problems' in \[\[solvers\]\] entry 1 must be a non-empty list"),
    (SMALL + "problems = [1]\n", r"'problems' in \[\[solvers\]\] entry 1 must be a list of problem labels, not with 1"),
    (SMALL + "options = { day = 2020-01-01 }\n", r"solvers\[0\]\.options\.day must be .* not the date 2020-01-01"),
    (changed("tasks = 2", "tasks = 9223372036854775808"), r"problems\[0\]\.data\.tasks must be below 2\*\*63"),
    (SMALL + f"options.{'a.' * 2000}b = 1\n", "nested more than 50 deep"),
    (of_shards(3), "workers of 'l1inf_hinge a/shards.json' must be at most the threads of the suite, 2, .*, not 3"),
    # Words
    *((f"name = {name}\n" + SMALL, "name of the suite must be") for name in ('""', '".."', '"a/b"', f'"{"a" * 101}"')),
    (of_problem(f"label = '{'x' * 4_000_000}'"), "must have at most 10000 characters, but has 4000000"),
    (SMALL + f"label = '{LONG}'\n", r"'label' in \[\[solvers\]\] entry 1 must have at most 200"),
    (SMALL + 'label = "\\u001b]0;title\\u0007"\n', r"'label' in .* must be visible characters on one line, not '\\x1b\]0;title"),
    (SMALL + 'options = { "a\\u0000" = 1 }\n', "a key in .* must be visible characters"),
    # Names, options and parameters
    (SMALL + 'problems = ["l1inf_hing synthetic_l1inf"]\n', "unknown problem label .*: did you mean 'l1inf_hinge synthetic_l1inf'"),
    (changed("radius = 1.0", "radius = -1.0"), "radius must be finite and at least 0, not -1"),
    (changed("l1inf_hinge", "sparse_low_rank").replace("radius", "tau"), "problem 'sparse_low_rank' needs parameter penalty"),
    # The same twice
    (SMALL + PROBLEM, "two problems are labelled"),
    (
        SMALL + labelled("a", "grid = { radius = [1.0] }") + labelled("a radius=1.0", "parameters = { radius = 5.0 }"),
        "two problems are labelled",
    ),
    (SMALL + 'grid = { backend = ["ECOS", "ECOS"] }', "two solvers are labelled"),
    ("seeds = [0, 0]\n" + SMALL, TWICE.format(*["l1inf_hinge synthetic_l1inf seed 0 . clarabel"] * 2)),
    (SMALL + '[[solvers]]\nname = "conic"\nlabel = "twin"\n', TWICE.format(".*", "l1inf_hinge synthetic_l1inf seed 0 . twin")),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=range(len(BAD)))
def test_bad_suites_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        cases_of(text)[0].instance.build(REGISTRY, None)
    assert len(str(refused.value)) < 3_000


def test_there_may_be_as_many_workers_as_threads() -> None:
    (case,) = cases_of(of_shards(2))
    assert case.instance.has_workers


def test_files_that_are_no_suites(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_suite(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="is a folder"):
        read_suite(str(tmp_path))
    with pytest.raises(InputError, match="unknown suite 'quik': did you mean 'quick'"):
        read_suite("quik")
    for name in ("n" * 300, "n" * 300 + ".toml", "a\0b.toml"):
        with pytest.raises(InputError, match=r"suite file .* cannot be used"):
            read_suite(name)
    for content in (b"[[[", b"\xff\xfe", b"a = ", b"a = " + b"[" * 5000, b"a = " + b"9" * 5000):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            read_suite(str(tmp_path / "bad.toml"))


def _swept(*lengths: int) -> str:
    """A suite with a grid of so many lists."""
    lists = ", ".join(f"p{i} = {list(range(length))}" for i, length in enumerate(lengths))
    return changed("parameters = { radius = 1.0 }", f"grid = {{ {lists} }}")


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        (_swept(*[10] * 200), 10**200),
        (of_problem(f"data_grid = {{ seed = {list(range(1000))}, split = {list(range(1000))} }}"), 10**6),
        (SMALL + f"grid = {{ backend = {list(range(1000))}, ladder = {list(range(1000))} }}\n", 10**6),
        (f"repetitions = 10000\nseeds = {list(range(1000))}\n" + SMALL, 10**7),
    ],
    ids=["many", "data", "options", "repetitions"],
)
def test_too_many_cases_are_refused_before_one_is_made(text: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> Any:
        raise AssertionError("a combination was made")

    monkeypatch.setattr(suite_module.itertools, "product", made)
    monkeypatch.setattr(suite_module, "Case", made)
    with pytest.raises(InputError, match=f"the suite has up to {cases} cases for each target, and 100000 are allowed") as refused:
        cases_of(text)
    assert "repetitions" in text or "entry '" in str(refused.value)


def test_the_label_of_a_plug_in_is_held_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = REGISTRY.solvers["conic"]
    for name, words in (("label", "x" * 4_000_000), ("version", "1\x1b[2J")):
        with monkeypatch.context() as patch:
            patch.setattr(solver, name, words)
            with pytest.raises(InputError, match=f"the {name} of solver 'conic' must"):
                cases_of(SMALL)
