"""The compiled loops of the projections."""
