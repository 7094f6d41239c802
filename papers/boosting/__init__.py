"""The appendix of Paisitkriangkrai, Shen, van den Hengel (CVPR 2012): group-sparse boosting beside its rivals."""
