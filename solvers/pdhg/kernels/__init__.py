"""The compiled loops of PDHG."""
