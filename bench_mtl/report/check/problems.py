"""The section of one problem: what it is, what its solvers said, and the enclosure of its optimum."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench_mtl.core.text import one_line
from bench_mtl.report.check import patterns
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.document import Block, readable, table
from bench_mtl.report.check.enclosures import Enclosure
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.findings import UNDERIVED
from bench_mtl.report.check.numbers import is_as_printed, shown
from bench_mtl.report.check.rows import SKIPPED, Run

#: Characters of an entry.
_LONGEST = 2_000


def list_faults(block: Block, derived: Derived, problem: str) -> Iterator[Finding]:
    """Yield the faults of the list of facts, or of what solvers said."""
    runs = derived.rows.by_problem[problem]
    facts = {title: one_line(words, _LONGEST) for title, words in problem_facts(runs).items() if words}
    notes = {(run.label, one_line(str(run.info["note"]), _LONGEST)) for run in runs if run.info.get("note")}
    for line, item in block.items():
        text = readable(item)
        says = [(label, note) for label, note in notes if text == f"{label} says: {note}"]
        fact = patterns.FACT.fullmatch(text)
        if says:
            continue
        if fact is None or fact["title"] not in facts:
            yield block.fault("no solver of the rows said so" if patterns.SAYS.fullmatch(text) else UNDERIVED, item, line)
        elif fact["words"] != facts[fact["title"]]:
            yield block.fault(f"the rows give {facts[fact['title']]}", item, line)


def problem_facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return what a problem is, by the titles of a report."""
    seeds = [str(run.seed) for run in runs if run.seed is not None]
    notes = [note for run in runs for note in json.loads(run.notes)]
    return {
        "Problem": _listed(run.family for run in runs),
        "Dimensions": _listed(_dimensions(json.loads(run.dimensions)) for run in runs) or "unknown, for it was never built",
        "Data": _listed(_pairs(json.loads(run.data)) for run in runs),
        "Parameters": _listed(_pairs(json.loads(run.parameters)) for run in runs),
        "Seeds" if len(set(seeds)) > 1 else "Seed": ", ".join(dict.fromkeys(seeds)),
        "Notes": "; ".join(dict.fromkeys(notes)),
    }


def _listed(texts: Iterator[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value if isinstance(value, str) else json.dumps(value)}" for key, value in table.items())


def _dimensions(sizes: Mapping[str, Any]) -> str:
    """Return sizes; n counts the examples of all tasks, where there are several."""
    ordered = {name: sizes[name] for name in (*(n for n in ("n", "d", "m") if n in sizes), *(n for n in sizes if n not in ("n", "d", "m")))}
    if "n" in ordered and sizes.get("m", 1) > 1:
        ordered["n"] = f"{json.dumps(ordered['n'])} examples in all"
    return _pairs(ordered)


def paragraph_faults(block: Block, derived: Derived, problem: str) -> Iterator[Finding]:
    """Yield the faults of the sentences below the table of a problem."""
    found = [enclosure for enclosure in derived.enclosures if enclosure.problem == problem]
    for sentence in patterns.PROBLEM_BREAK.split(" ".join(block.lines)):
        match = patterns.matched(patterns.PROBLEM, sentence)
        if match is None:
            yield block.fault(UNDERIVED, sentence)
        elif match[0] == "skipped":
            skipped = _skipped(derived.rows.by_problem[problem])
            if readable(match[1]["names"]) != one_line(", ".join(skipped), _LONGEST):
                yield block.fault(f"the solvers that were skipped are {', '.join(skipped) or 'none'}", sentence)
        else:
            seed = match[1]["seed"]
            of_seed = [each for each in found if seed is None or each.seed == int(seed)]
            wrong = [list(_enclosure_faults(match[0], match[1], enclosure)) for enclosure in of_seed]
            if not wrong:
                yield block.fault("the rows prove nothing of this", sentence)
            elif all(wrong):
                yield block.fault(min(wrong, key=len)[0], sentence)


def missing(blocks: Sequence[Block], derived: Derived, problem: str) -> Iterator[str]:
    """Yield what the section of a problem, of these blocks, must have and has not."""
    runs = derived.rows.by_problem[problem]
    ran = any(run.status != SKIPPED for run in runs)
    if ran and not any(block.kind == "table" and "Status" in table(block).titles for block in blocks):
        yield f"the table of solvers on {problem} is not there"
    items = [readable(item) for block in blocks if block.kind == "list" for _, item in block.items()]
    for title, words in problem_facts(runs).items():
        if words and not any(item.startswith(f"{title}: ") for item in items):
            yield f"the line '{title}' of {problem} is not there"
    sentences = [each for block in blocks if block.kind == "paragraph" for each in patterns.PROBLEM_BREAK.split(" ".join(block.lines))]
    names = [found[0] for sentence in sentences if (found := patterns.matched(patterns.PROBLEM, sentence)) is not None]
    enclosed = sum(enclosure.problem == problem for enclosure in derived.enclosures)
    if names.count("enclosure") + names.count("contradiction") != enclosed:
        yield f"the runs on {problem} enclose {enclosed} optima, and the report says so of another number"
    if _skipped(runs) and "skipped" not in names:
        yield f"solvers were skipped on {problem}, and the report does not say so"


def missing_warnings(paragraphs: Sequence[Block], derived: Derived) -> Iterator[str]:
    """Yield the instances whose bounds contradict each other, where no warning of these paragraphs says so."""
    matches = [patterns.CONTRADICTION.fullmatch(readable(block.text)) for block in paragraphs]
    said = [(match["problem"], None if match["seed"] is None else int(match["seed"])) for match in matches if match is not None]
    for enclosure in derived.enclosures:
        if not enclosure.agrees and (enclosure.problem, enclosure.seed) not in said:
            yield f"no warning says here that the bounds of {enclosure.problem} contradict each other"


def _skipped(runs: Sequence[Run]) -> list[str]:
    ran = {run.label for run in runs if run.status != SKIPPED}
    return list(dict.fromkeys(run.label for run in runs if run.label not in ran))


def _enclosure_faults(name: str, match: re.Match[str], found: Enclosure) -> Iterator[str]:
    if (name == "enclosure") is not found.agrees:
        yield f"the bounds {'do not ' if found.agrees else ''}contradict each other"
        return
    for title, value, makers in (("low", found.dual, found.dual_by), ("high", found.primal, found.primal_by)):
        if not is_as_printed(match[title], value, "objective"):
            yield f"the rows give {shown(value, 'objective')} for {match[title]}"
        if readable(match[f"{title}_by"]) not in makers:
            yield f"{shown(value, 'objective')} is proven by {', '.join(sorted(makers))}"
    if name == "enclosure" and not is_as_printed(match["gap"], found.gap, "gap"):
        yield f"the relative gap is {shown(found.gap, 'gap')}"


def contradiction_faults(block: Block, derived: Derived) -> Iterator[Finding]:
    """Yield the faults of a warning of bounds that contradict each other."""
    match = patterns.CONTRADICTION.fullmatch(readable(block.text))
    if match is None:
        yield block.fault(UNDERIVED)
        return
    seed = None if match["seed"] is None else int(match["seed"])
    found = [each for each in derived.enclosures if (each.problem, each.seed) == (match["problem"], seed) and not each.agrees]
    wrong = [[*_enclosure_faults("contradiction", match, each), *_missing(match["missing"], each)] for each in found]
    if not wrong:
        yield block.fault("the rows do not contradict each other there")
    elif all(wrong):
        yield block.fault(min(wrong, key=len)[0])


def _missing(said: str, found: Enclosure) -> Iterator[str]:
    if said != ", ".join(found.missing):
        yield f"the enclosures that miss the others are those of {', '.join(found.missing)}"
