"""The speed of callables in tests, against a stored baseline; ``fairlap.pytest_plugin`` is its face to pytest."""
