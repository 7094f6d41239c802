"""Times the projections against plain NumPy, against each other and against a copy of their input, and holds the ratios to their bars.

Run ``python -m benchmarks`` at the root of the repository; ``--help`` lists the options. Not installed, and not part of the tests but for
one run on a tiny grid.
"""
