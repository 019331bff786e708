"""What is kept: the row, the store of runs, and the files that rows are exported to."""
