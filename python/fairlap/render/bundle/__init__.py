"""One file that holds a run with all its evidence, and the check that nothing in it was changed."""
