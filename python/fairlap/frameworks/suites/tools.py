"""The names of the tools whose benchmarks are run from Python."""

ASV, PYTEST, TORCH = "asv", "pytest", "operator-benchmark"
