"""What solvers share that draw examples: the examples and their order, averages of the last half, and compiled steps."""
