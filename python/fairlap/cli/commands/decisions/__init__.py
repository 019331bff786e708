"""Commands that end with a decision: keep, choose, pass or fail."""
