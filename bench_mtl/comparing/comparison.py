"""What a comparison has come to, for a script or a notebook."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError, not_written, plural
from bench_mtl.core.text import LONGEST_LINE, one_line
from bench_mtl.core.types import Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bench_mtl.results.loading import Results

#: Columns of the results that `Comparison.frame` and `Comparison.samples` show, and those that are called otherwise there.
_OF_RUNS = ["problem_label", "solver_label", "kind", "repetition", "status", "relative_gap", "primal", "dual", "iterations", "reason"]
_OF_SAMPLES = ["run_id", "seconds", "iteration", "passes", "primal", "dual", "relative_gap", "infeasibility", "asked_tolerance"]
_NAMES = {"problem_label": "problem", "solver_label": "solver", "iteration": "step"}


class Comparison:
    """The rows of a comparison: a view of the results in `folder`, as `compare` and `bench-mtl run` make them.

    Where the folder is temporary it goes with this object.
    """

    def __init__(self, folder: Path, *, is_temporary: bool = False) -> None:
        self.folder = folder
        if is_temporary:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @cached_property
    def _results(self) -> Results:
        from bench_mtl.results.loading import read_results

        return read_results(self.folder)

    @property
    def targets(self) -> tuple[float, ...]:
        """The relative gaps, loose to tight."""
        return self._results.targets

    @property
    def problems(self) -> list[str]:
        """The labels of the problems."""
        return list(dict.fromkeys(map(str, self._results.runs["problem_label"])))

    def frame(self) -> pd.DataFrame:
        """Return a row for every run and each target that it counts for.

        Columns: problem, solver, kind (specialised, generic or peer), repetition, target, seconds (of set-up and solve until the gap was
        proven; missing where it was not), status (of the run), relative_gap (the least that is
        proven), primal and dual (the enclosure of the optimum), iterations, reason.
        """
        from bench_mtl.results.frames import times_to_gap

        results = self._results
        reached = times_to_gap(results.runs, results.samples, results.targets)[["run_id", "target", "seconds"]]
        merged = results.runs[["id", *_OF_RUNS]].merge(reached, left_on="id", right_on="run_id", sort=False)
        return merged[[*_OF_RUNS[:4], "target", "seconds", *_OF_RUNS[4:]]].rename(columns=_NAMES)

    def samples(self) -> pd.DataFrame:
        """Return a row for every certified point of the runs to the tightest target, of an iterative solver of the one for its curve.

        Columns: problem, solver, repetition, seconds, step, passes, primal, dual, relative_gap, infeasibility, asked_tolerance. The seconds
        of a generic solver count from zero for every tolerance that it is asked for; of others that column is missing.
        """
        results = self._results.in_full
        about = results.runs[["id", "problem_label", "solver_label", "repetition"]].rename(columns={"id": "run_id"})
        return about.merge(results.samples[_OF_SAMPLES], on="run_id", sort=False).drop(columns="run_id").rename(columns=_NAMES)

    def summary(self) -> pd.DataFrame:
        """Return the summary table of the report, as text: a row a problem and solver."""
        from bench_mtl.report import summary_frame

        return summary_frame(self.folder)

    def plot(self, problem: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the proven relative gap against the seconds on a problem, certificates excluded, as the figures of reports do.

        The label of the problem is needed where there are several; what is drawn on is a new figure of pyplot, unless it is `ax`.
        """
        from bench_mtl.report.figures.curves import GAP, course_points, draw_courses, draw_pointless, notes_of, runs_of, scale

        problems = self.problems
        problem = one_of("problem", problems[0] if problem is None and len(problems) == 1 else problem, tuple(problems))
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
        shown = self._results.in_full
        points = course_points(shown.runs, shown.samples, shown.measures)
        points = points[points["problem"] == problem]
        ax.set(xscale="log", yscale="log", xlabel="solve time (s)", ylabel="proven relative gap", title=problem)
        if runs := runs_of(points, GAP, "seconds", self.targets):
            scale(ax, points[GAP].dropna().to_numpy(), GAP, self.targets)
            draw_courses(ax, runs, GAP, self.targets, notes_of(points), in_seconds=True)
        draw_pointless(ax, points[~points["solver"].isin(list(runs))])
        ax.grid(True, color="0.92", linewidth=0.6)
        ax.set_axisbelow(True)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize="small")
        return ax

    def report(self, folder: Path | str, formats: Collection[str] = ()) -> Path:
        """Write the report to `folder`, with the results beside it, and return the path of its text.

        The `formats` are such as "md", "html", "csv", "svg"; all by default. Raises InputError where the folder holds other results or
        another report, or cannot be written to, or a format is not known.
        """
        from bench_mtl.report import write_report
        from bench_mtl.report.formats import chosen
        from bench_mtl.results import FILE_NAME
        from bench_mtl.results.database import require_free
        from bench_mtl.results.files import made_folder

        chosen(formats)  # before anything is copied
        target = Path(folder)
        if target.absolute() != self.folder.absolute():
            if (target / FILE_NAME).exists():
                raise InputError(f"folder {target} holds results already: choose another one")
            require_free(target)
            with made_folder(target):
                try:
                    shutil.copyfile(self.folder / FILE_NAME, target / FILE_NAME)
                except OSError as error:
                    raise not_written(f"the results cannot be written to {target}", error) from None
        return write_report(target, formats=formats)

    def __repr__(self) -> str:
        from bench_mtl.report.columns import format_target

        runs = self._results.runs
        verified = int((runs["status"] == Status.VERIFIED).sum())
        targets = ", ".join(map(format_target, self.targets))
        counts = f"{plural(runs['solver_label'].nunique(), 'solver')} on {plural(len(self.problems), 'problem')}"
        return f"<Comparison of {counts}, relative gap {targets}\n  {verified} of {plural(len(runs), 'run')} verified: .summary(), .plot()>"

    def __str__(self) -> str:
        """Return the summary as a table for a terminal, without problem and number of runs where these are the same, and `sentences`."""
        from bench_mtl.report.columns import to_text

        table = self.summary()
        constant = [name for name in ("Problem", "Runs") if name in table and table[name].nunique() == 1]
        return "\n".join([to_text(table.drop(columns=constant)), "", *self.sentences()])

    def sentences(self) -> list[str]:
        """Return who was first to prove the tightest target on each problem, and why runs of others did not reach the target."""
        from bench_mtl.report.columns import format_seconds, format_target

        frame = self.frame()
        frame = frame[frame["target"] == min(self.targets)]
        gap, lines = format_target(min(self.targets)), []
        for problem, rows in frame.groupby("problem", sort=False):
            of_solver = rows.groupby("solver", sort=False)["seconds"]
            seconds = of_solver.median()[of_solver.count() == of_solver.size()].sort_values(kind="stable")
            if seconds.empty:
                every = " in every run" if of_solver.count().any() else ""
                lines.append(f"{problem}: no solver has proven a gap of {gap}{every}.")
                continue
            times = [f"{label} ({format_seconds(second)} s)" for label, second in seconds.items()]
            lines.append(f"{problem}: {times[0]} is first to prove a gap of {gap}" + (f", before {times[1]}." if times[1:] else "."))
        short = frame[frame["seconds"].isna()].drop_duplicates(["problem", "solver", "reason"])
        lines += [one_line(f"{row.problem}: {row.solver}: {row.status}: {row.reason}", LONGEST_LINE) for row in short.itertuples()]
        return lines

    def _repr_html_(self) -> str:
        return str(self.summary().to_html(index=False, border=0))
