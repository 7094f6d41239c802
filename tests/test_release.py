"""What a release says of itself is the same everywhere: version, date, licence, dependencies, commands, citations."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from bench_mtl.core.version import __version__

ROOT = Path(__file__).resolve().parents[1]

RELEASE = r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$"
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]

#: Of the Citation File Format 1.2.0: the keys of a file and of a reference that this project uses, and those that must be there.
CITATION_KEYS = {
    "cff-version", "message", "type", "title", "abstract", "authors", "version", "date-released", "license", "keywords", "references",
}  # fmt: skip
CITATION_MUST = {"cff-version", "message", "title", "authors"}
REFERENCE_KEYS = {
    "type", "title", "authors", "collection-title", "conference", "journal", "volume", "issue", "year", "start", "end", "doi",
}  # fmt: skip
REFERENCE_MUST = {"type", "title", "authors"}
REFERENCE_TYPES = {"article", "book", "conference-paper", "slides", "report", "software", "thesis", "generic"}
PERSON_KEYS = {"family-names", "given-names"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads(text_of("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return yaml.safe_load(text_of("CITATION.cff"))


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load(text_of("recipe/recipe.yaml"))


# Changelog


def test_the_newest_release_is_this_version_and_what_is_not_released_stands_before_it() -> None:
    headings = re.findall(r"^## .*$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "## [Unreleased]"
    releases = [re.fullmatch(RELEASE, heading) for heading in headings[1:]]
    assert all(releases), headings
    assert releases[0][1] == __version__
    dates = [datetime.date.fromisoformat(found[2]) for found in releases]
    assert dates == sorted(dates, reverse=True)


def test_changes_are_of_a_kind_and_every_kind_stands_once() -> None:
    for part in re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert set(kinds) <= set(KINDS)
        assert len(kinds) == len(set(kinds))


# Citation


def test_the_citation_is_of_this_release(project, citation) -> None:
    newest = re.search(RELEASE, text_of("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert citation["version"] == __version__
    assert citation["date-released"] == datetime.date.fromisoformat(newest[2])
    assert citation["authors"] == project["authors"] == [{"name": "the bench_mtl developers"}]
    assert citation["license"] in project["license"].split(" AND ")


def test_the_citation_has_the_form_of_its_format(citation) -> None:
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert CITATION_MUST <= set(citation) <= CITATION_KEYS
    assert all(isinstance(word, str) for word in citation["keywords"])
    for reference in citation["references"]:
        assert REFERENCE_MUST <= set(reference) <= REFERENCE_KEYS, reference["title"]
        assert reference["type"] in REFERENCE_TYPES
        assert reference["authors"]
        assert all(set(author) == PERSON_KEYS for author in reference["authors"])
        assert isinstance(reference["year"], int)
        assert re.fullmatch(r"10\.\d{4,9}/\S+", reference.get("doi", "10.0000/none"))


def test_references_are_those_of_the_documents(citation) -> None:
    plain = re.sub(r"[${}\\_]", "", text_of("docs/references.bib").replace(r"\ell", "l"))
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert reference["title"] in plain
        names = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert " and ".join(names) in plain


# Conda recipe


def test_the_recipe_builds_this_version_from_the_tree(project, recipe) -> None:
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == project["name"]
    assert ((ROOT / "recipe" / recipe["source"]["path"]) / "pyproject.toml").resolve() == ROOT / "pyproject.toml"
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    licences = {path.relative_to(ROOT).as_posix() for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert set(recipe["about"]["license_file"]) == licences


def test_the_recipe_needs_what_the_project_needs(project, recipe) -> None:
    wanted = [Requirement(text) for text in project["dependencies"]]
    conda = sorted(f"{need.name} {need.specifier}" for need in wanted)
    python = f"python {project['requires-python']}"
    assert sorted(recipe["requirements"]["run"]) == sorted([*conda, python])
    (backend,) = tomllib.loads(text_of("pyproject.toml"))["build-system"]["requires"]
    needed = Requirement(backend)
    assert sorted(recipe["requirements"]["host"]) == sorted([python, "pip", f"{needed.name} {needed.specifier}"])


def test_the_recipe_has_the_commands_of_the_project(project, recipe) -> None:
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in project["scripts"].items()]


# Hooks


def test_hooks_are_local_and_run_what_make_lint_runs() -> None:
    hooks = yaml.safe_load(text_of(".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    run = [" ".join(hook["entry"].split()[:2]) for hook in hooks["repos"][0]["hooks"]]
    lint = text_of("Makefile").partition("\nlint:")[2].partition("\n\n")[0]
    assert run == [f".venv/bin/{' '.join(line.split()[:2])}" for line in re.findall(r"\$\(BIN\)/(.*)", lint)]
