"""Results in one SQLite file; `docs/results.md` explains every column."""

from bench_mtl.results.database import FILE_NAME, REPORT_NAMES, Plan, Store, plan_suite
from bench_mtl.results.rows import Outcome, Pattern
from bench_mtl.results.schema import SCHEMA, SCHEMA_VERSION

__all__ = ["FILE_NAME", "REPORT_NAMES", "SCHEMA", "SCHEMA_VERSION", "Outcome", "Pattern", "Plan", "Store", "plan_suite"]
