"""Words that this project once used in a sense of its own are in nothing that a stranger reads: pages, messages, docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = re.compile(
    r"\b(rungs?|looks|told|said|kept|(?:gets?|got) there|stands?|walkovers?|in one go|hears|words? of others|of one's own)\b", re.IGNORECASE
)
#: Code, which may have such names: blocks, spans, targets of links, entries of the reference. Reports are made by code, which is searched.
CODE = re.compile(r"^ *```.*?^ *```|``.+?``|`[^`\n]+`|\]\([^)]*\)|^::: [^\n]*", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for name in ("*.md", "docs/**/*.md", "papers/*.md", "benchmarks/README.md", "paper/*.md", "reports/README.md", "bench_mtl/*.md")
    for page in ROOT.glob(name)
]
MODULES = [file for name in ("bench_mtl", "problems", "solvers", "papers") for file in (ROOT / name).rglob("*.py")]


def texts_of(module: Path) -> Iterator[tuple[int, str]]:
    """Yield the public docstrings of a module, and its messages: constants of several words."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    private = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and getattr(node, "name", "").startswith("_"):
                private.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and node not in private:
            yield node.lineno, node.value


def test_nothing_that_is_read_has_private_words() -> None:
    texts = [(page, 1, page.read_text(encoding="utf-8")) for page in PAGES]
    texts += [(module, line, text) for module in MODULES for line, text in texts_of(module)]
    assert [
        f"{file.relative_to(ROOT)}:{line + text.count(chr(10), 0, word.start())} has {word[0]}"
        for file, line, text in texts
        for word in PRIVATE.finditer(CODE.sub(lambda code: re.sub(r"[^\n]", "`", code[0]), text))
    ] == []
