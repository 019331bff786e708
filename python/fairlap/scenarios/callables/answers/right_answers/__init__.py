"""What callables should answer, and how far rounding may move it."""
