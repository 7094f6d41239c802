"""Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,inf regularization", ICML 2009."""
