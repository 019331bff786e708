"""What is asked of a contestant: calls, training, load, callables, ranks."""
