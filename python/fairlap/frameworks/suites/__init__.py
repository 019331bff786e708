"""Benchmarks that were written for asv or pytest-benchmark, run in a process of their own as those tools run them."""
