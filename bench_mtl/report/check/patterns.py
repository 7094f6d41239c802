"""How every sentence of a report reads: one named pattern for each kind of sentence, and nowhere else.

A sentence that no pattern here matches is not derived by any rule, which is itself a fault. When a report says something new, it gets a
pattern here and a rule in the module that derives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_TARGET = r"\d+(?:\.\d+)?e-?\d+"
_TARGETS = rf"{_TARGET}(?:, {_TARGET})*(?: and {_TARGET})?"
_RATIO = r"\d[\d.]*(?:e[+-]?\d+)?x"
_NUMBER = r"-?\d[\d.]*(?:e[+-]?\d+)?"
_KIND = r"(?P<kind>specialised|generic|peer|unknown)"
_RIVALS = r"(?P<rivals>\w+(?: or \w+)*)"
_LIMIT = rf"(?: within the (?P<limit>{_NUMBER}) s limit)?"
_BOTH = (
    rf"\((?P<seconds>{_NUMBER}) s against (?P<other_seconds>{_NUMBER}) s"
    rf"(?:; 95 % interval (?P<low>{_RATIO}|infx) to (?P<high>{_RATIO}|infx))?\)"
)


def _compiled(patterns: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(pattern, re.DOTALL) for name, pattern in patterns.items()}


#: Sentences of the paragraphs at the head of the findings, after their titles.
HEAD: Final = _compiled({
    "all verified": r"(?P<total>\d+) runs?, all verified\.",
    "run counts": r"(?P<total>\d+) runs?: (?P<counts>\d+ \w+(?:, \d+ \w+)*)\.",
    "where failures are": r"Every one that is not verified is listed under \[Not verified\]\(#not-verified\)\.",
    "no contradiction": r"No run's bounds contradict another's\.",
    "compared": rf"(?P<kinds>(?:\d+ \w+(?:, | and )?)+|0) solvers? on (?P<problems>\d+) problems?, to a proven "
    rf"relative gap of (?P<targets>{_TARGETS})\.",
    "fastest": rf"To a proven relative gap of (?P<targets>{_TARGETS}), (?P<parts>[^.]+)\.",
    "certainty": r"(?P<total>\d+) ratios?: (?P<parts>.+)\.",
})  # fmt: skip

#: Titles of these paragraphs.
HEAD_TITLE: Final = re.compile(r"\*\*(?P<title>Success|Speed|How sure)\.\*\* ")

#: Where one of these sentences ends and the next begins.
HEAD_BREAK: Final = re.compile(r"(?<=\.) (?=[A-Z0-9])")

#: What a sentence "fastest" counts.
FASTEST_PARTS: Final = _compiled({
    "kind": rf"a {_KIND} solver is fastest on (?P<count>\d+)",
    "nobody": r"no solver gets there on (?P<count>\d+)",
    "walkovers": r"solvers of one kind alone were run, which is no win, on (?P<count>\d+)",
    "total": r" of (?P<count>\d+) problems?",
})  # fmt: skip

#: What a sentence "certainty" counts.
CERTAINTY_PARTS: Final = _compiled({
    "intervals": r"(?P<count>\d+) with a 95 % interval",
    "bounds": r"(?P<count>\d+) (?:is a bound|are bounds) \(no rival got there\)",
    "once": r"(?P<count>\d+) without an interval",
})  # fmt: skip

#: What may stand between parts.
GLUE: Final = re.compile(r"(?:,| and|\s)*")

#: A warning above all findings.
CONTRADICTION: Final = re.compile(
    rf"\*\*CONTRADICTION on (?P<problem>.+?)(?: \(seed (?P<seed>-?\d+)\))?: the lower bound (?P<low>{_NUMBER}) of (?P<low_by>.+) "
    rf"exceeds the "
    rf"objective (?P<high>{_NUMBER}) of (?P<high_by>.+?)\. At least one of them is wrong, and no number of this problem should be "
    rf"trusted\. "
    r"Enclosures that miss the others: (?P<missing>.+)\.\*\*"
)

#: The findings of one problem.
BULLET: Final = re.compile(r"\*\*(?P<problem>(?:[^*\\]|\\.)+)\*\*(?P<doubt> \(contradicted, see above\))?: (?P<rest>.+)", re.DOTALL)

#: Where one finding of a problem ends and the next begins.
FINDING_BREAK: Final = re.compile(rf"(?<=\.) (?=To {_TARGETS}, )")

#: The targets of a finding, what it says, and the ratios of other targets that it adds.
FINDING: Final = re.compile(
    rf"To (?P<targets>{_TARGETS}), (?P<body>.+?)(?:; (?P<also>(?:>= )?{_RATIO} to {_TARGET}(?:, (?:>= )?{_RATIO} to {_TARGET})*))?\.",
    re.DOTALL,
)
ALSO: Final = re.compile(rf"(?P<sign>>=)? ?(?P<ratio>{_RATIO}) to (?P<target>{_TARGET})")

#: What a finding says.
FINDINGS: Final = _compiled({
    "faster": rf"the {_KIND} solver (?P<winner>.+?) (?P<wins>wins: it )?is (?P<ratio>{_RATIO}) faster than (?P<other>.+), the "
    rf"fastest {_RIVALS} "
    rf"solver {_BOTH}",
    "level": rf"the {_KIND} solver (?P<winner>.+?) is about as fast as (?P<other>.+), the fastest {_RIVALS} solver {_BOTH}",
    "at once": rf"the {_KIND} solver (?P<winner>.+?) is there at once, before (?P<other>.+), the fastest {_RIVALS} solver {_BOTH}",
    "walkover": rf"the {_KIND} solver (?P<winner>.+?) is there in (?P<seconds>{_NUMBER}) s; no {_RIVALS} solver was run on this "
    rf"problem, so this "
    r"is no win",
    "unrivalled": rf"the {_KIND} solver (?P<winner>.+?) is fastest with (?P<seconds>{_NUMBER}) s(?:, at least (?P<ratio>{_RATIO}) "
    rf"faster)?; "
    rf"no {_RIVALS} solver gets there{_LIMIT} \((?P<losers>.*)\)",
    "nobody": rf"no solver gets there{_LIMIT} \((?P<losers>.*)\)",
})  # fmt: skip

#: How a solver ended, after its name.
ENDING: Final = re.compile(
    r"(?:in (?P<reached>\d+) of (?P<runs>\d+) runs, )?(?:run on (?P<tried>\d+) of (?P<instances>\d+) seeds, )?(?P<status>.+?)"
    rf"(?: after (?P<least>{_NUMBER})(?: to (?P<most>{_NUMBER}))? s)?"
)

#: What a label is cut at, so that a finding of many solvers ends in the middle.
CUT: Final = "..."

#: Where a sentence below the map of speed-ups ends and the next begins.
MAP_BREAK: Final = re.compile(r"(?<=\.) (?=[A-Z-])")
NO_MAP: Final = "No problem has a time of a specialised and of a generic solver, so there is no map of speed-ups."

#: Sentences of one problem.
PROBLEM: Final = _compiled({
    "enclosure": rf"Together the runs prove(?: for seed (?P<seed>-?\d+))? that the optimum lies between (?P<low>{_NUMBER}) \(by "
    rf"(?P<low_by>.+?)\) and "
    rf"(?P<high>{_NUMBER}) \(by (?P<high_by>.+?)\): a relative gap of (?P<gap>{_NUMBER})\.",
    "contradiction": rf"\*\*The runs contradict each other(?: for seed (?P<seed>-?\d+))?: the lower bound (?P<low>{_NUMBER}) \(by "
    rf"(?P<low_by>.+?)\) "
    rf"exceeds the objective (?P<high>{_NUMBER}) \(by (?P<high_by>.+?)\)\.\*\*",
    "skipped": r"Skipped, for they do not fit: (?P<names>.+)\.",
})  # fmt: skip
PROBLEM_BREAK: Final = re.compile(r"(?<=\.|\*) (?=Together the runs prove|\*\*The runs contradict)")
SAYS: Final = re.compile(r"(?P<solver>.+?) says: (?P<note>.+)", re.DOTALL)
FACT: Final = re.compile(r"(?P<title>\w[\w ]*): (?P<words>.*)", re.DOTALL)

#: Of a table that is longer than a report shows.
MORE_ROWS: Final = re.compile(r"\*(?P<count>\d+) more rows in the CSV file of this table\.\*")

#: A figure, and what stands below it, or after the name of one that is not shown.
FIGURE: Final = re.compile(r"!\[(?:[^\]\\]|\\.)*\]\((?:figures/[^)\s]+|cover\.svg)\)")
CAPTION: Final = re.compile(
    r"(?P<name>`figures/[^`\s]+\.svg`: )?\*(?P<words>(?:[^*\\]|\\.)+)\*(?P<links> \((?:(?:, )?\[\w+\]\(figures/[^)\s]+\))+\))?", re.DOTALL
)

#: Sentences that say where else something is, and which figures there are; of no time and no ratio. Those of `PLACE_CLAIMS` say something
#: of results as well, which is derived. "no pattern" and "no spread" do so too and are not derived: patterns of solutions are not read, and
#: which runs make a pair is the figure's own rule.
PLACES: Final = _compiled({
    "no point": r"No run has a proven point on this problem, so there is no figure: the reasons are listed below\.",
    "first problems": r"The first \d+ problems alone have figures on paper; the page report\.html draws this one too\.",
    "first solutions": r"The solutions of the first \d+ problems alone are pictured\.",
    "no pictures": r"These results hold no patterns of solutions, so there are no pictures of them\.",
    "no pattern": r"No verified run on this problem has a pattern of its solution\.",
    "measures": r"Objectives and measures are on paper of the first \d+ problems alone; report\.html has those of all\.",
    "tables": r"The tables are to the tightest target; all targets are in their CSV files and on the HTML page\.",
    "more groups": r"(?:A profile|Time against precision) is drawn of \d+ groups of problems, families as a whole before others, "
    r"and not of \d+ more; "
    r"the tables have all\.",
    "few": r"(?:Profiles are|Time against precision is) drawn of \d+ instances or more, so not of .+\.",
    "no spread": r"No group of like problems has \d+ ratios of single runs to one target, so their spread is not drawn\.",
    "no profiles": r"No solver was run on every instance of .+, so there are no profiles\.",
    "no solved": r"No solver proves a gap of .+, so there (?:are no profiles|is no front of time and precision)\.",
    "sweeps": r"Scaling is drawn of the first \d+ sweeps and not of \d+ more; the table has all\.",
})  # fmt: skip

#: What of these is derived, with what it is of.
PLACE_CLAIMS: Final = _compiled({
    "no point": r"No run has a proven point on this problem, .+",
    "no profiles": r"No solver was run on every instance of (?P<group>.+), so there are no profiles\.",
    "no solved": rf"No solver proves a gap of (?P<target>{_TARGET}) on (?P<half>half of )?(?P<group>.+), so there (?:are|is) no .+",
})  # fmt: skip

#: What is said of a whole section.
NO_FAILURE: Final = "Every run is verified."
NO_POINT: Final = "No run has a proven point."

#: The section of failed runs, and in it what stands before and after the lines of code where they raised.
FAILURES: Final = "Not verified"
FOLD: Final = "<details><summary>Where the runs of status error raised</summary>"
FOLD_END: Final = "</details>"

#: Lines before the findings.
PROVENANCE: Final = re.compile(r"(?P<title>Machine|Run|Versions|Libraries|Linear solvers|Threads|Limits): (?P<words>.+)")
#: Limits of a run by their names in a suite.
LIMITS: Final = _compiled({
    "seconds": rf"(?P<value>{_NUMBER}) s a solve, of a generic solver for every tolerance anew",
    "wall_seconds": rf"(?P<value>{_NUMBER}) s a run in all",
    "iterations": rf"(?P<value>{_NUMBER}) iterations",
    "work": rf"(?P<value>{_NUMBER}) passes",
    "memory_gib": rf"(?P<value>{_NUMBER}) GiB",
})  # fmt: skip
RUN_DATES: Final = re.compile(
    r"(?P<first>\d{4}-\d\d-\d\d)(?: to (?P<last>\d{4}-\d\d-\d\d))?, (?:(?P<once>every case once)|1 to (?P<most>\d+) runs of a case)"
)
STARTED: Final = re.compile(r"Started: (?P<times>.+)\.")
UNFINISHED: Final = re.compile(r"\*\*Unfinished: (?P<missing>\d+) cases? of the suite (?:has|have) no row yet\.\*\*")
INLINE: Final = re.compile(
    r"\*\*(?P<which>All|Some) runs were certified in the process of their solver alone\*\* \(isolation inline\), which a solver can "
    r"change: they "
    r"prove less\."
)
VIEW: Final = re.compile(r"This is a view of the results: .+", re.DOTALL)
SEVERAL_MACHINES: Final = re.compile(r"\*\*The runs were made on (?P<count>\d+) machines\*\* \((?P<names>.+)\)\. Every problem is "
r"reported for each "
    r"machine by itself: no ratio, mean or profile mixes their times\. Proven bounds hold on all of them\.", re.DOTALL)  # fmt: skip
DIFFERENT: Final = re.compile(
    r"\*\*The runs were made in (?P<count>\d+) \[environments\]\(#environment\)\*\*, which differ in (?P<keys>.+): ratios mix them, "
    r"and are to be "
    r"read with that in mind\."
)
COMMITS: Final = re.compile(
    r"The runs were made at (?P<count>\d+) commits: the files that a problem and a solver compute with are the same in all rows of "
    r"each, or these "
    r"would have been made anew; the runner's may differ\."
)
DIFFERENT_TIMES: Final = re.compile(
    r"\*\*The runs were made in (?P<count>\d+) different environments: their times hardly compare across them\.\*\*"
)
COMMAND: Final = re.compile(r"bench-mtl run (?P<suite>\S+)(?: --data-dir DATA)? --out DIR")

#: How the call or the command begins that made rows without a suite's file.
WITHOUT_FILE: Final = re.compile(r"bench_mtl\.compare\(|bench-mtl solve ")

#: The row of a report in the list of reports.
INDEX_ROW: Final = re.compile(r"\| \[(?P<name>[^\]]+)\]\((?P<path>[^)]+)/report\.md\) \|(?P<command>[^|]*)\|(?P<finding>.*)\|")


def matched(patterns: Mapping[str, re.Pattern[str]], sentence: str) -> tuple[str, re.Match[str]] | None:
    """Return the name of the pattern that a whole sentence is an instance of, and the match."""
    return next(((name, found) for name, pattern in patterns.items() if (found := pattern.fullmatch(sentence)) is not None), None)
