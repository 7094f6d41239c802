"""Suite files: what they may say, what is refused, and how they expand."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import available_processors
from bench_mtl.core.version import __version__
from bench_mtl.engine import suite as suite_module
from bench_mtl.engine import suite_file
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Suite, expand
from bench_mtl.engine.suite_file import parse_suite, read_suite, shipped_suites

REGISTRY = load_registry()

SMALL = """
[[problems]]
name = "l1inf_hinge"
data = { name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5 }
parameters = { radius = 1.0 }

[[solvers]]
name = "conic"
"""


def parsed(text: str) -> Suite:
    return parse_suite(tomllib.loads(text), text)


def test_defaults() -> None:
    suite = parsed(SMALL)
    assert suite.targets == (1e-2, 1e-4, 1e-6)
    assert (suite.repetitions, suite.seeds, suite.threads, suite.limits.seconds) == (1, (0,), 1, 60.0)
    (case,) = expand(suite, REGISTRY)
    assert (case.target, case.solver_label, case.instance.seed, case.instance.label) == (1e-6, "clarabel", 0, "l1inf_hinge synthetic_l1inf")


@pytest.mark.parametrize("name", shipped_suites())
def test_shipped_suites_are_valid_and_say_what_they_are(name: str) -> None:
    suite = read_suite(name)
    assert suite.name == name
    assert suite.description
    assert expand(suite, REGISTRY)


def test_grids_seeds_and_repetitions_multiply() -> None:
    text = "repetitions = 2\nseeds = [1, 2, 3]\n" + SMALL.replace(
        "parameters = { radius = 1.0 }", "grid = { radius = [1.0, 2.0] }"
    ).replace('name = "conic"', 'name = "conic"\ngrid = { backend = ["ECOS", "SCS"] }')
    cases = expand(parsed(text), REGISTRY)
    assert len(cases) == 2 * 3 * 2 * 2
    assert len({case.key for case in cases}) == len(cases)
    assert {case.solver_label for case in cases} == {"ecos", "scs"}
    assert {case.instance.label for case in cases} == {f"l1inf_hinge synthetic_l1inf radius={radius}" for radius in (1.0, 2.0)}


def test_data_can_be_swept() -> None:
    text = SMALL.replace("examples = 5 }", "preprocess = 'none' }\ndata_grid = { examples = [5, 10, 20] }")
    cases = expand(parsed(text), REGISTRY)
    assert [case.instance.data["examples"] for case in cases] == [5, 10, 20]
    assert [case.instance.label for case in cases] == [f"l1inf_hinge synthetic_l1inf examples={n}" for n in (5, 10, 20)]
    assert len({case.instance.key for case in cases}) == 3
    assert cases[1].instance.build(REGISTRY, None).dimensions["n"] == 20
    alone = expand(parsed(SMALL.replace("examples = 5", "examples = 10, preprocess = 'none'")), REGISTRY)
    assert alone[0].key == cases[1].key  # a sweep makes the cases that its entries alone would make


def test_steps_of_preprocessing_can_be_swept_along_with_parameters() -> None:
    swept = "}\ndata_grid = { preprocess = ['none', ['tfidf', 'unit_rows']] }"
    text = SMALL.replace("examples = 5 }", "examples = 5 " + swept).replace(
        "parameters = { radius = 1.0 }", "grid = { radius = [1.0, 2.0] }"
    )
    labels = [case.instance.label.removeprefix("l1inf_hinge synthetic_l1inf ") for case in expand(parsed(text), REGISTRY)]
    assert labels[1:3] == ["preprocess=none radius=2.0", "preprocess=tfidf+unit_rows radius=1.0"]


def test_a_misspelt_key_of_a_sweep_is_refused_when_the_data_are_made() -> None:
    (case,) = expand(parsed(SMALL.replace("[[solvers]]", "data_grid = { exmaples = [5] }\n[[solvers]]")), REGISTRY)
    with pytest.raises(InputError, match="unknown key for data 'synthetic_l1inf' 'exmaples': did you mean 'examples'"):
        case.instance.build(REGISTRY, None)


def test_seeds_do_not_multiply_what_has_no_randomness() -> None:
    text = "seeds = [1, 2, 3]\n" + SMALL.replace(
        '{ name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5 }', '{ name = "digits" }'
    )
    (case,) = expand(parsed(text), REGISTRY)
    assert case.instance.seed is None


def test_fresh_seeds_come_from_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn_at(commit: str | None) -> tuple[int, ...]:
        monkeypatch.setattr(suite_file, "current_commit", lambda: commit)
        return parsed("fresh_seeds = 3\n" + SMALL).seeds

    first = drawn_at("0123456789ab")
    assert first == drawn_at("0123456789ab")
    assert len({*first, *drawn_at("0123456789ac"), *drawn_at(None)}) == 9  # a package that was installed has its version alone
    assert suite_file.fresh_seeds(5, "0123456789ab")[:3] == first
    cases = expand(parsed("fresh_seeds = 2\n" + SMALL), REGISTRY)
    assert tuple(case.instance.seed for case in cases) == suite_file.fresh_seeds(2, __version__)


def test_threads_may_be_all_processors() -> None:
    for value, number in (("2", 2), ('"all"', available_processors())):
        assert [case.threads for case in expand(parsed(f"threads = {value}\n" + SMALL), REGISTRY)] == [number]


def test_the_key_depends_on_everything_that_may_change_the_outcome() -> None:
    base = expand(parsed(SMALL), REGISTRY)[0].key
    changes = [
        SMALL.replace("tasks = 2", "tasks = 3"),
        SMALL.replace("radius = 1.0", "radius = 1.5"),
        SMALL + 'options = { backend = "ECOS" }\n',
        "targets = [1e-3]\n" + SMALL,
        "threads = 2\n" + SMALL,
        "seeds = [1]\n" + SMALL,
        "limits = { seconds = 5 }\n" + SMALL,
    ]
    keys = {expand(parsed(text), REGISTRY)[0].key for text in changes}
    assert len(keys | {base}) == len(changes) + 1
    assert expand(parsed('name = "other"\ndescription = "x"\n' + SMALL), REGISTRY)[0].key == base


def test_an_alias_is_the_same_case_as_the_long_form() -> None:
    (case,) = expand(parsed(SMALL.replace('"conic"', '"ecos"')), REGISTRY)
    (long,) = expand(parsed(SMALL + 'options = { backend = "ECOS" }\n'), REGISTRY)
    assert case == long
    assert case.key == long.key
    assert (case.solver, case.solver_label, case.options) == ("conic", "ecos", {"backend": "ECOS"})
    swept = expand(parsed(SMALL.replace('"conic"', '"HiGHS"') + 'grid = { method = ["ipx", "simplex"] }\n'), REGISTRY)
    assert [case.options for case in swept] == [{"method": method, "backend": "HIGHS"} for method in ("ipx", "simplex")]
    with pytest.raises(InputError, match="solver 'scs' is solver 'conic' with backend = 'SCS', so backend cannot be 'ECOS'"):
        expand(parsed(SMALL.replace('"conic"', '"scs"') + 'options = { backend = "ECOS" }\n'), REGISTRY)


def test_a_solver_can_have_repetitions_of_its_own() -> None:
    text = "repetitions = 3\n" + SMALL + '\n[[solvers]]\nname = "pdhg"\nrepetitions = 1\n'
    cases = expand(parsed(text), REGISTRY)
    counts = Counter((case.solver, case.target) for case in cases if not case.traced)
    assert [count for (solver, _), count in counts.items() if solver == "pdhg"] == [1, 1, 1]
    assert [count for (solver, _), count in counts.items() if solver != "pdhg"] == [3]
    assert len({case.key for case in cases}) == len(cases)


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
    assert expand(parsed(text), REGISTRY) == [case for case in cases if not case.traced]


def test_a_solver_can_be_kept_to_some_problems() -> None:
    second = SMALL.split("[[solvers]]")[0].replace("[[problems]]", '[[problems]]\nlabel = "second"')
    text = second + SMALL + 'problems = ["second"]\n'
    assert [case.instance.label for case in expand(parsed(text), REGISTRY)] == ["second"]
    with pytest.raises(InputError, match=r"unknown problem label .* 'secand': did you mean 'second'"):
        parsed(text.replace('["second"]', '["secand"]'))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("repetition = 2\n" + SMALL, "unknown key in the suite 'repetition': did you mean 'repetitions'"),
        ("limits = { second = 2 }\n" + SMALL, r"unknown key in \[limits\] 'second': did you mean 'seconds'"),
        (SMALL.replace("parameters", "paramters"), r"unknown key in \[\[problems\]\] entry 1 'paramters': did you mean 'parameters'"),
        (SMALL + "option = {}\n", r"unknown key in \[\[solvers\]\] entry 1 'option': did you mean 'options'"),
        (SMALL.replace("[[solvers]]", "[[solver]]"), "the suite needs the key 'solvers', and has 'solver': did you mean 'solvers'?"),
        (SMALL.replace("[[problems]]", "[[problem]]"), "the suite needs the key 'problems', and has 'problem': did you mean 'problems'?"),
        (SMALL[SMALL.index("[[solvers]]") :], "^the suite needs the key 'problems'$"),
        (SMALL.replace('name = "conic"', 'nme = "conic"'), r"entry 1 needs the key 'name', and has 'nme': did you mean 'name'\?"),
        ("solvers = []\n" + SMALL.split("[[solvers]]")[0], r"\[\[solvers\]\] must have at least one entry"),
        (SMALL.replace('name = "conic"', ""), r"\[\[solvers\]\] entry 1 needs the key 'name'"),
        (SMALL.replace('"conic"', "7"), "'name' in .* must be a string, not 7"),
        ("repetitions = 0\n" + SMALL, "repetitions must be a whole number of at least 1, not 0"),
        (SMALL + "\nrepetitions = 0\n", "repetitions must be a whole number of at least 1, not 0"),
        ("repetitions = true\n" + SMALL, "'repetitions' in the suite must be a whole number, not True"),
        ("threads = 1.5\n" + SMALL, "threads must be a whole number of at least 1, not 1.5"),
        ("targets = []\n" + SMALL, "targets must name at least one"),
        ("targets = [0.0]\n" + SMALL, "targets must be finite and above 0"),
        ("targets = ['a']\n" + SMALL, "targets must be a number"),
        ("seeds = []\n" + SMALL, "seeds must name at least one seed"),
        ("seeds = [-1]\n" + SMALL, "seeds must be a whole number"),
        ("seeds = [1]\nfresh_seeds = 2\n" + SMALL, "seeds and fresh_seeds exclude each other"),
        ("fresh_seeds = 0\n" + SMALL, "fresh_seeds must be a whole number"),
        ('threads = "many"\n' + SMALL, "threads must be a whole number"),
        ("limits = { seconds = -1 }\n" + SMALL, "seconds in .* above 0"),
        ("limits = { iterations = 0 }\n" + SMALL, "iterations in .* at least 1"),
        (SMALL.replace("[[solvers]]", "data_grid = { split = 'all' }\n[[solvers]]"), "data_grid key 'split' .* non-empty list, not 'all'"),
        (SMALL.replace("[[solvers]]", "data_grid = { tasks = [3] }\n[[solvers]]"), "data_grid key 'tasks' .* is in 'data' as well"),
        (SMALL.replace("[[solvers]]", "data_grid = { file = ['a'] }\n[[solvers]]"), "data_grid key 'file' .* cannot be swept"),
        (SMALL + "grid = { backend = [] }\n", "grid key 'backend' .* non-empty list"),
        (SMALL + SMALL.split("[[solvers]]")[0], "two problems are labelled"),
        (SMALL + "problems = [1]\n", r"'problems' in \[\[solvers\]\] entry 1 must be a list of problem labels, not with 1"),
        (SMALL + "options = { day = 2020-01-01 }\n", r"solvers\[0\]\.options\.day must be .* not the date 2020-01-01"),
        (SMALL.replace("radius = 1.0", "radius = [12:00:00]"), r"problems\[0\]\.parameters\.radius\[0\] must be .* not the time"),
        (SMALL.replace("tasks = 2", "tasks = 9223372036854775808"), r"problems\[0\]\.data\.tasks must be below 2\*\*63"),
        (f"seeds = [0, {hex(16**5000)}]\n" + SMALL, r"seeds\[1\] must be below 2\*\*63"),
        (SMALL + f"options.{'a.' * 2000}b = 1\n", "nested more than 50 deep"),
        ("repetitions = 10001\n" + SMALL, "repetitions must be at most 10000, not 10001"),
        ("threads = 10001\n" + SMALL, "threads must be at most 10000, not 10001"),
        *[(f"name = {name}\n" + SMALL, "name of the suite must be") for name in ('""', '".."', '"a/b"', '"a\\u0000"', f'"{"a" * 101}"')],
    ],
)
def test_bad_suites_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parsed(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"conic"', '"conik"'), "unknown solver 'conik': did you mean 'conic'"),
        (('"l1inf_hinge"', '"l1inf_hing"'), "unknown problem 'l1inf_hing': did you mean 'l1inf_hinge'"),
        (
            ('name = "conic"', 'name = "conic"\noptions = { backends = "ECOS" }'),
            "unknown option of solver 'conic' 'backends': did you mean 'backend'",
        ),
        (('name = "conic"', 'name = "conic"\noptions = { backend = "ECOSS" }'), "unknown backend 'ECOSS': did you mean 'ECOS'"),
        (('name = "conic"', 'name = "conic"\ngrid = { backend = ["ECOS", "ECOS"] }'), "two solvers are labelled"),
    ],
)
def test_bad_names_and_options_are_refused_before_anything_runs(change: tuple[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        expand(parsed(SMALL.replace(*change)), REGISTRY)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds = [0, 0]\n" + SMALL, "'l1inf_hinge synthetic_l1inf seed 0 | clarabel' and 'l1inf_hinge synthetic_l1inf seed 0 | clarabel'"),
        (SMALL.replace("parameters = { radius = 1.0 }", "grid = { radius = [1.0, 1.0] }"), "two cases are the same run"),
        (SMALL + SMALL.split("[[solvers]]")[0].replace("[[problems]]", '[[problems]]\nlabel = "twin"'), "'twin seed 0 | clarabel'"),
        (SMALL + '[[solvers]]\nname = "conic"\nlabel = "twin"\n', "'l1inf_hinge synthetic_l1inf seed 0 | twin'"),
    ],
)
def test_the_same_case_twice_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match="two cases are the same run") as error:
        expand(parsed(text), REGISTRY)
    assert words in str(error.value)


def test_there_may_be_no_more_workers_than_threads() -> None:
    text = "threads = 2\n" + SMALL.replace(
        'name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5', 'file = "a/shards.json", workers = 3'
    )
    with pytest.raises(InputError, match=r"workers of 'l1inf_hinge a/shards.json' must be at most the threads of the suite, 2, .*, not 3"):
        expand(parsed(text), REGISTRY)
    (case,) = expand(parsed(text.replace("workers = 3", "workers = 2")), REGISTRY)
    assert case.instance.has_workers


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("{ radius = -1.0 }", "radius must be finite and at least 0, not -1"),
        ("{ radius = nan }", "radius must be finite"),
        ("{ radius = 1.0, penalty = 1.0 }", "exactly one of radius"),
        ("{ }", "exactly one of radius"),
        ("{ raduis = 1.0 }", "unknown parameter of problem 'l1inf_hinge' 'raduis': did you mean 'radius'"),
        ('{ radius = 1.0, loss = "max" }', "reduction must be one of mean, sum"),
    ],
)
def test_bad_parameters_are_refused_when_the_instance_is_built(parameters: str, words: str) -> None:
    case = expand(parsed(SMALL.replace("{ radius = 1.0 }", parameters)), REGISTRY)[0]
    with pytest.raises(InputError, match=words):
        case.instance.build(REGISTRY, None)


def test_missing_parameters_are_named() -> None:
    text = SMALL.replace("l1inf_hinge", "sparse_low_rank").replace("radius", "tau")
    with pytest.raises(InputError, match="problem 'sparse_low_rank' needs parameter penalty"):
        expand(parsed(text), REGISTRY)[0].instance.build(REGISTRY, None)


def test_files_that_are_no_suites(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_suite(str(tmp_path / "none.toml"))
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
    return SMALL.replace("parameters = { radius = 1.0 }", f"grid = {{ {lists} }}")


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        (_swept(*[100] * 3), 10**6),
        (_swept(*[1000] * 3), 10**9),
        (_swept(*[10] * 200), 10**200),
        (SMALL.replace("[[solvers]]", f"data_grid = {{ seed = {list(range(1000))}, split = {list(range(1000))} }}\n[[solvers]]"), 10**6),
        (SMALL + f"grid = {{ backend = {list(range(1000))}, ladder = {list(range(1000))} }}\n", 10**6),
        (f"repetitions = 10000\nseeds = {list(range(1000))}\n" + SMALL, 10**7),
    ],
)
def test_too_many_cases_are_refused_before_one_is_made(text: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> Any:
        raise AssertionError("a combination was made")

    monkeypatch.setattr(suite_module.itertools, "product", made)
    monkeypatch.setattr(suite_module, "Case", made)
    with pytest.raises(InputError, match=f"the suite has up to {cases} cases for each target, and 100000 are allowed") as refused:
        expand(parsed(text), REGISTRY)
    assert "repetitions" in text or "entry '" in str(refused.value)


def test_as_many_cases_as_are_allowed_are_counted_right() -> None:
    suite = parsed(f"repetitions = 10\nseeds = {list(range(100))}\n" + _swept(10, 10))
    suite_module.require_countable(suite)
    assert len(suite.problems) == 1
    with pytest.raises(InputError, match="up to 100010 cases"):
        suite_module.require_countable(replace(suite, repetitions=1, seeds=tuple(range(10_001)), problems=parsed(_swept(10)).problems))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SMALL + f"options.{'a.' * 20_000}b = 1\n", "nested more than 50 deep"),
        (f"[{'a . ' * 20_000}b]\n", "nested more than 50 deep"),
        (SMALL + f"options = {{ {'a.' * 20_000}b = 1 }}\n", "nested more than 50 deep"),
        (SMALL + "options." + '"a".' * 20_000 + "b = 1\n", "nested more than 50 deep"),
        (SMALL + f"options = {{ x = {chr(34) * 3}y{chr(34) * 4}, {'a.' * 20_000}b = {chr(34)}z{chr(34)} }}\n", "nested more than 50 deep"),
        (SMALL + f"options.x = {'[' * 20_000}{']' * 20_000}\n", "nested more than 50 deep"),
        (SMALL + "#" * 2**20, "allowed"),
    ],
)
def test_a_file_that_would_take_long_to_read_is_not_read(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "[[[" not in text:  # of which the reader itself has soon enough
        monkeypatch.setattr(suite_file.tomllib, "loads", None)
    with pytest.raises(InputError, match=words):
        suite_file.read_toml(text)


def test_words_with_many_dots_are_no_nesting() -> None:
    words = "a." * 200 + "b"
    text = f"x = '{words}'  # {words}\ny = \"{words}\"\nz = \"\"\"\n{words}\n\"\"\"\nu = '''\n{words}'''\n[{'a.' * 49}b]\n"
    assert suite_file.read_toml(text)["x"] == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SMALL.replace("[[solvers]]", f"label = '{'x' * 4_000_000}'\n[[solvers]]"), "must have at most 10000 characters, not 4000000"),
        (SMALL.replace("[[solvers]]", f"label = '{'x' * 201}'\n[[solvers]]"), r"'label' in \[\[problems\]\] entry 1 must have at most 200"),
        (SMALL + f"label = '{'x' * 201}'\n", r"'label' in \[\[solvers\]\] entry 1 must have at most 200"),
        (SMALL + 'label = "\\u001b]0;title\\u0007"\n', r"'label' in .* must be visible characters on one line, not '\\x1b\]0;title"),
        (SMALL + 'label = "a\\u202eb"\n', "visible characters"),
        (SMALL + 'label = "two\\nlines"\n', "visible characters"),
        (SMALL + 'options = { "a\\u0000" = 1 }\n', "a key in .* must be visible characters"),
        (f"description = '{'x' * 10_001}'\n" + SMALL, "description must have at most 10000 characters"),
        (f"targets = {[0.1] * 51}\n" + SMALL, "targets must be at most 50, not 51"),
        (f"seeds = {list(range(10_001))}\n" + SMALL, "seeds has 10001 entries, and 10000 are allowed"),
    ],
    ids=range(10),
)
def test_long_and_hidden_words_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        parsed(text)
    assert len(str(refused.value)) < 3_000


def test_the_label_of_a_plug_in_is_held_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = REGISTRY.solvers["conic"]
    for name, words in (("label", "x" * 4_000_000), ("version", "1\x1b[2J")):
        with monkeypatch.context() as patch:
            patch.setattr(solver, name, words)
            with pytest.raises(InputError, match=f"the {name} of solver 'conic' must"):
                expand(parsed(SMALL), REGISTRY)
