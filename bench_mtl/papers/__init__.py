"""The papers' learning experiments: a grid of cells, each run once and kept, and the published numbers beside ours.

An experiment is one file in the folder of its paper, named in `index`; what experiments share is beside these folders.
"""

from bench_mtl.papers.cells import Cell, cells_of
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.index import experiment, experiments
from bench_mtl.papers.report import rewrite_paper_report, write_paper_report
from bench_mtl.papers.store import CellStore, experiment_in

__all__ = [
    "Cell",
    "CellStore",
    "Experiment",
    "Findings",
    "PublishedNumber",
    "Scale",
    "Section",
    "Verdict",
    "cells_of",
    "experiment",
    "experiment_in",
    "experiments",
    "rewrite_paper_report",
    "write_paper_report",
]
