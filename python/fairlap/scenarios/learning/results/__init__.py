"""What training to a score adds to a row."""
