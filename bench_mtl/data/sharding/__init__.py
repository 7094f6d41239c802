"""Data of files, written in shards block by block."""

from bench_mtl.data.sharding.files import Sharded, shard_file

__all__ = ["Sharded", "shard_file"]
