"""Libraries that solve differential equations: each is a framework whose variants are its solvers."""
