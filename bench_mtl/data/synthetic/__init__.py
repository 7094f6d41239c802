"""Generators of synthetic tasks: the recipes of the papers, with every size a parameter."""

from bench_mtl.data.synthetic.blocks import BlockRecipe, blocks_dense, blocks_sparse, write_synthetic_shards
from bench_mtl.data.synthetic.linear import synthetic_glm, synthetic_l1inf, synthetic_multiclass, synthetic_sparse_low_rank
from bench_mtl.data.synthetic.market import synthetic_market
from bench_mtl.data.synthetic.stream import synthetic_stream

__all__ = [
    "BlockRecipe", "blocks_dense", "blocks_sparse", "synthetic_glm", "synthetic_l1inf", "synthetic_market", "synthetic_multiclass",
    "synthetic_sparse_low_rank", "synthetic_stream", "write_synthetic_shards",
]  # fmt: skip
