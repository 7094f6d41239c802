"""The text of plug-in files that tests write."""

from textwrap import indent


def iterative(name: str, steps: str, *, more: str = "", at_import: str = "") -> str:
    """A file with the iterative solver `Mine`, which takes any problem.

    `steps` are the lines of its method, `more` further lines of its class, and `at_import` lines before the class.
    """
    return f'''
import os, signal, sys, time
from dataclasses import dataclass
import numpy as np
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver

{at_import}

@dataclass(frozen=True)
class Mine(IterativeSolver):
    """Does what a test asks for."""
    name = "{name}"
    requires = frozenset()
{indent(more, "    ")}

    def steps(self, problem, start=None):
{indent(steps, "        ")}
'''
