"""Data of files, written in shards block by block."""

from bench_mtl.data.sharding.files import Sharded, allowed_options, shard_file

__all__ = ["Sharded", "allowed_options", "shard_file"]
