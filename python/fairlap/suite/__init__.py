"""What came of a suite: one document, one table, one exit status."""
