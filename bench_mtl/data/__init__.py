"""Task data: designs and targets of many tasks, generated, embedded or read from files."""

from bench_mtl.data.catalogue import Entry, data_directory, entries, load, resolved, takes_seed
from bench_mtl.data.embedded import digits
from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.data.preprocess import preprocess
from bench_mtl.data.readers import read_arff, read_libsvm, read_npz, read_prices, read_shards, read_tabular, write_shards
from bench_mtl.data.sharding import Sharded, shard_file
from bench_mtl.data.synthetic import (
    BlockRecipe,
    blocks_dense,
    blocks_sparse,
    synthetic_glm,
    synthetic_l1inf,
    synthetic_market,
    synthetic_multiclass,
    synthetic_sparse_low_rank,
    synthetic_stream,
    write_synthetic_shards,
)
from bench_mtl.model.task_data import TaskData, signs

__all__ = [
    "BlockRecipe", "Entry", "Sharded", "TaskData", "blocks_dense", "blocks_sparse", "data_directory", "digits", "entries", "fingerprint",
    "load", "preprocess", "read_arff", "read_libsvm", "read_npz", "read_prices", "read_shards", "read_tabular", "resolved", "shard_file",
    "signs", "synthetic_glm", "synthetic_l1inf", "synthetic_market", "synthetic_multiclass", "synthetic_sparse_low_rank",
    "synthetic_stream", "takes_seed", "write_shards", "write_synthetic_shards",
]  # fmt: skip
