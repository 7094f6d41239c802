"""Readers of data files; each refuses a malformed file with one line that names the file and what is wrong."""

from bench_mtl.data.readers.arff import read_arff
from bench_mtl.data.readers.libsvm import read_libsvm
from bench_mtl.data.readers.npz import read_npz
from bench_mtl.data.readers.prices import read_prices
from bench_mtl.data.readers.shards import read_shards, write_shards
from bench_mtl.data.readers.tabular import read_tabular

__all__ = ["read_arff", "read_libsvm", "read_npz", "read_prices", "read_shards", "read_tabular", "write_shards"]
