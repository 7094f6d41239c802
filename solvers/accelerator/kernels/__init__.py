"""What JAX compiles: pure functions of arrays of float64, with every loop inside."""
