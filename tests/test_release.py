"""What the tree says of itself is the same everywhere: version, date, licence, dependencies, commands, citations; and it stays light."""

import datetime
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from bench_mtl.core.version import __version__
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import shipped_suites

ROOT = Path(__file__).resolve().parents[1]
RELEASE = r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$"
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

#: All that may lie at the top of the tree: packages, tests and what they found; what a reader begins with; what a release needs.
TOP = {
    "bench_mtl", "problems", "solvers", "papers", "tests", "reports", "benchmarks", "pyproject.toml", "constraints.txt", "Makefile",
    ".gitignore", ".pre-commit-config.yaml", ".ci", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md",
    "LICENSE", "docs", "mkdocs.yml", "CITATION.cff", "paper", "recipe",
}  # fmt: skip
#: Of all files, in blocks as `git ls-files | xargs du -c` counts them.
MOST_KIB = 35 * 1024
#: A figure that cannot be made from the results beside it: it is of 567 fits.
OTHER_FIGURES = {"reports/boosting-table/sharing.svg"}
MOST_OF_A_FIGURE = 150_000

#: What the paper may count in words, and what there is of it.
COUNTED = {"families of problems": lambda: len(load_registry().problems), "suites": lambda: len(shipped_suites())}
WORDS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
]  # fmt: skip
#: Numbers in the paper's prose that are no results: the level of the intervals, and the clause of the licence.
NO_RESULTS = {"95", "3"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads(text_of("pyproject.toml"))["project"]


def test_changes_stand_under_their_release_and_kind() -> None:
    unreleased, *releases = re.findall(r"^## .*$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert unreleased == "## [Unreleased]"
    found = [re.fullmatch(RELEASE, heading) for heading in releases]
    assert all(found), releases
    assert found[0][1] == __version__
    dates = [datetime.date.fromisoformat(one[2]) for one in found]
    assert dates == sorted(dates, reverse=True)
    for part in re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))


def test_the_citation_is_of_this_release_and_its_references_are_those_of_the_documents(project: dict[str, Any]) -> None:
    citation = yaml.safe_load(text_of("CITATION.cff"))
    newest = re.search(RELEASE, text_of("CHANGELOG.md"), re.MULTILINE)
    assert citation["version"] == __version__
    assert citation["date-released"] == datetime.date.fromisoformat(newest[2])
    assert citation["authors"] == project["authors"] == [{"name": "the bench_mtl developers"}]
    assert citation["license"] in project["license"].split(" AND ")
    plain = re.sub(r"[${}\\_]", "", text_of("docs/references.bib").replace(r"\ell", "l"))
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert reference["title"] in plain
        assert " and ".join(f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]) in plain


def test_the_conda_recipe_builds_this_version_with_what_the_project_needs(project: dict[str, Any]) -> None:
    recipe = yaml.safe_load(text_of("recipe/recipe.yaml"))
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == project["name"]
    assert ((ROOT / "recipe" / recipe["source"]["path"]) / "pyproject.toml").resolve() == ROOT / "pyproject.toml"
    assert (recipe["about"]["license"], recipe["about"]["summary"]) == (project["license"], project["description"])
    licences = {path.relative_to(ROOT).as_posix() for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert set(recipe["about"]["license_file"]) == licences
    needs = [Requirement(text) for text in project["dependencies"]]
    python = f"python {project['requires-python']}"
    assert sorted(recipe["requirements"]["run"]) == sorted([python, *(f"{need.name} {need.specifier}" for need in needs)])
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in project["scripts"].items()]


def test_hooks_are_local_and_run_what_make_lint_runs() -> None:
    hooks = yaml.safe_load(text_of(".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    run = [" ".join(hook["entry"].split()[:2]) for hook in hooks["repos"][0]["hooks"]]
    lint = text_of("Makefile").partition("\nlint:")[2].partition("\n\n")[0]
    assert run == [f".venv/bin/{' '.join(line.split()[:2])}" for line in re.findall(r"\$\(BIN\)/(.*)", lint)]


# The paper; that its table says what the reports say is a test of benchmarks.glance


@pytest.fixture(scope="module")
def paper() -> tuple[dict[str, object], str, str]:
    """Return the head of the paper, its text, and its prose: the text without table, code, formulas, citations and pictures' places."""
    _, head, text = text_of("paper/paper.md").split("---\n", 2)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return yaml.safe_load(head), text, re.sub(r"`[^`]*`|\$[^$]*\$|\[@[^\]]*\]|\]\([^)]*\)", " ", "\n".join(lines))


def test_the_paper_has_what_the_journal_asks_for(paper: tuple[dict[str, object], str, str]) -> None:
    head, text, prose = paper
    assert {"title", "tags", "authors", "date", "bibliography"} <= set(head)
    sections = re.findall(r"^# (.*)$", text, re.MULTILINE)
    assert sections[:3] == ["Summary", "Statement of need", "State of the field"]
    assert sections[-1] == "References"
    assert 750 <= len(re.findall(r"\w+", prose)) <= 1500
    cited = {key for group in re.findall(r"\[(@[^\]]*)\]", text) for key in re.findall(r"@(\w+)", group)}
    assert cited == set(re.findall(r"^@\w+\{(\w+),", text_of("paper/paper.bib"), re.MULTILINE))
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert pictures
    assert [place for place in pictures if not (ROOT / "paper" / place).is_file()] == []


def test_the_prose_of_the_paper_has_no_numbers_but_those_of_its_table(paper: tuple[dict[str, object], str, str]) -> None:
    _, text, prose = paper
    number = r"(?<![\w.])\d+(?:\.\d+)?(?:e-\d+)?"
    table = {found for line in text.splitlines() if line.startswith("|") for found in re.findall(number, line)}
    assert set(re.findall(number, prose)) <= table | NO_RESULTS
    counted = re.findall(rf"\b({'|'.join(WORDS)})\b ({'|'.join(COUNTED)})", " ".join(text.split()))
    assert counted
    assert [(word, what) for word, what in counted if WORDS.index(word) != COUNTED[what]()] == []


# The tree


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).exists()]


def test_the_tree_is_tidy_and_light(tracked: list[Path]) -> None:
    assert {file.relative_to(ROOT).parts[0] for file in tracked} <= TOP
    assert sum(-(-file.lstat().st_size // 4096) * 4 for file in tracked) <= MOST_KIB
    assert [file for file in tracked if file.suffix != ".sqlite" and file.stat().st_size > 1_000_000] == []


def test_the_repository_keeps_results_texts_and_the_first_figure_of_a_report(tracked: list[Path]) -> None:
    files = [file for file in tracked if file.is_relative_to(ROOT / "reports")]
    assert {file.suffix for file in files} == {".md", ".sqlite", ".svg"}
    figures = {file for file in files if file.suffix == ".svg" and file.relative_to(ROOT).as_posix() not in OTHER_FIGURES}
    assert figures == {file.with_name("cover.svg") for file in files if file.suffix == ".md" and "](cover.svg)" in file.read_text()}
    assert max(file.stat().st_size for file in figures) < MOST_OF_A_FIGURE
