"""Files that other benchmarking tools read."""
