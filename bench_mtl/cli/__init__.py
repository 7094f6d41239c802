"""The command line. Commands are thin: they parse, call the library and choose the exit code (`docs/command-line.md`, "Exit codes")."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from importlib import import_module
from typing import NoReturn

import click

from bench_mtl.cli.console import fail, say
from bench_mtl.cli.options import EXIT_BAD_INPUT, EXIT_BUG, EXIT_INCOMPLETE, EXIT_INTERRUPTED
from bench_mtl.core.errors import BenchError, IncompleteError, is_full
from bench_mtl.core.version import __version__

#: How long the threads of a command that has been stopped may take to end.
_ENDING_SECONDS = 3.0
#: How long after an interrupt that Python has discarded the next one comes.
_AGAIN_SECONDS = 0.1
#: Commands by the module in which they are, with the first sentence of their help.
_COMMANDS = {
    "certify": {"certify": "Enclose the optimal value of the CVXPY problem NAME that FILE.py makes; the file is run."},
    "listing": {
        "doctor": "Say what is installed, solver by solver, and whether clock, limits and storage work here.",
        "list": "List what there is: problems, solvers, suites or data.",
        "shard": "Write the data of a file, SOURCE, in shards, for more examples than memory holds: about two shards are in memory.",
        "validate": "Check projections, certificates and every problem-solver pair against CVXPY on random small cases.",
    },
    "path": {"path": "Solve PROBLEM with SOLVER for several values of a parameter, each from its neighbour's solution, each certified."},
    "results": {
        "check": "Compare all that the results in FOLDERS hold with its checksums, and list what is damaged.",
        "compare": "Compare two results folders case by case: the old one A, the new one B.",
        "export": "Write the results in FOLDER as tables for other programs.",
        "merge": "Bring the results of one suite in several FOLDERS, from several machines, together in a new one.",
        "publish": "Write a static site of RESULTS: results folders, or folders of such.",
        "report": "Write reports of results, and check those that are written.",
    },
    "run": {"run": "Run SUITE (a shipped name or a TOML file), store a row for every case and write the report."},
    "skill": {"skill": "Print instructions for assistants: how to compare solvers, certify a solution, add a solver and read a report."},
    "solve": {"solve": "Solve one PROBLEM with one SOLVER in this process, showing certified samples; or compare several SOLVERs on it."},
}


def main() -> None:
    """Run the command line: an error with a name becomes one line and exit code 2, any other a traceback and exit code 4."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.unraisablehook = _interrupt_again
    _open_streams()
    os.environ["MPLBACKEND"] = "agg"  # figures are files, and a backend that is not there would end the command
    try:
        code = cli(prog_name="bench-mtl", standalone_mode=False)  # however it is started: a shell asks for completions under it
    except click.exceptions.Abort:  # what click makes of a KeyboardInterrupt
        code = fail("interrupted", EXIT_INTERRUPTED)
    except click.ClickException as error:
        usage = f" (see: {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        code = fail(error.format_message() + usage, EXIT_BAD_INPUT)
    except (BenchError, OSError) as error:
        is_unfinished = isinstance(error, IncompleteError) or (isinstance(error, OSError) and is_full(error))
        code = fail(str(error), EXIT_INCOMPLETE if is_unfinished else EXIT_BAD_INPUT)
    except Exception:
        say(traceback.format_exc().rstrip(), error=True)
        code = fail("this is a bug of bench-mtl and says nothing about the runs; what has finished is stored", EXIT_BUG)
    if code in (EXIT_INCOMPLETE, EXIT_INTERRUPTED):
        _end_soon(code)
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Open those of the three standard streams to nowhere that are closed: else a file of results would get their number, and the words."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the first number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _end_soon(code: int) -> None:
    """Let no thread, of Dask's or of ours, keep a command that has been stopped: all is stored and said."""
    end = threading.Timer(_ENDING_SECONDS, os._exit, [code])
    end.daemon = True
    end.start()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


class _Termination(KeyboardInterrupt):
    """A request to end, unlike an interrupt that some solver raises itself."""


def _interrupt(*_: object) -> NoReturn:
    """Raise an interrupt on a request to end, so that every `finally` is passed: the one that ends the worker, above all."""
    raise _Termination


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Request the end once more where Python has discarded the interrupt, as in finalisers and in callbacks of its garbage collector."""
    if isinstance(lost.exc_value, _Termination):
        _thread.start_new_thread(_terminate, ())  # which waits for no lock, as threads of `threading` do
    else:
        sys.__unraisablehook__(lost)


def _terminate() -> None:
    time.sleep(_AGAIN_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


class _Commands(click.Group):
    """The commands; the module of one is imported when it is called, so that nobody waits who asks for help or for names."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        module = next((module for module, commands in _COMMANDS.items() if name in commands), None)
        return name, command and getattr(import_module(f"bench_mtl.cli.{module}"), "list_" if name == "list" else str(name)), rest


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, invoke_without_command=True)
@click.version_option(__version__, prog_name="bench-mtl")
@click.pass_context
def cli(context: click.Context) -> None:
    """Compare specialised with generic solvers on structured multi-task problems, every gap proven.

    \b
    Examples:
      bench-mtl run quick                          run a shipped suite, write results/quick/report.md
      bench-mtl run scene --data-dir ~/data        a suite on real data
      bench-mtl solve l1inf_hinge scs --data digits --param radius=5
      bench-mtl validate --cases 200               check everything against CVXPY

    Exit codes: 0, all is well; 1, a run failed, a target was missed, or a check found something; 2, bad usage or input; 3, not finished,
    the same command goes on; 4, a bug of bench-mtl; 130, interrupted. docs/command-line.md says more.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


for _commands in _COMMANDS.values():
    for _name, _words in _commands.items():
        cli.add_command(click.Command(_name, help=_words))
