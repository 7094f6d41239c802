"""What runs one solver on one problem, and what finds both: clock, driver, registry, suites, environment, regularisation path."""
