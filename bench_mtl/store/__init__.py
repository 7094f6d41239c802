"""Results in one SQLite file; `docs/results.md` explains every column."""

from bench_mtl.store.database import FILE_NAME, REPORT_NAMES, Store
from bench_mtl.store.patterns import Pattern
from bench_mtl.store.rows import Outcome
from bench_mtl.store.schema import SCHEMA, SCHEMA_VERSION

__all__ = ["FILE_NAME", "REPORT_NAMES", "SCHEMA", "SCHEMA_VERSION", "Outcome", "Pattern", "Store"]
