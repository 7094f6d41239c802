"""The repository stays light and tidy: of a published report it keeps the results, the text and the figures that the text shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Results keep their proofs: 6 MB of those of headline-peers. Cells under all protocols of the papers are 3 MB.
MOST_BYTES = 66_000_000
MOST_FILES = 900

#: All that may lie at the top of the tree.
TOP = {
    # the packages, their tests and what they found
    "bench_mtl", "problems", "solvers", "tests", "reports", "benchmarks", "pyproject.toml", "constraints.txt", "Makefile", ".gitignore",
    ".pre-commit-config.yaml", ".ci",
    # what a reader begins with
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "LICENSE", "docs", "mkdocs.yml",
    # what a release needs
    "CITATION.cff", "paper", "recipe",
}  # fmt: skip


def kept(folder: str) -> list[Path]:
    """Return the files below a folder that git tracks."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).exists()]


def test_nothing_else_lies_at_the_top() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in kept(".")} <= TOP


def test_the_folders_of_a_release_are_small() -> None:
    assert {file.relative_to(ROOT).as_posix() for folder in ("paper", "recipe") for file in kept(folder)} == {
        "paper/paper.md",
        "paper/paper.bib",
        "recipe/recipe.yaml",
    }


def test_reports_are_light() -> None:
    files = kept("reports")
    assert len(files) < MOST_FILES
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    assert {file.suffix for file in files} == {".md", ".sqlite", ".svg"}


def test_nothing_else_is_large() -> None:
    assert [file for file in kept(".") if file.suffix != ".sqlite" and file.stat().st_size > 1_000_000] == []
