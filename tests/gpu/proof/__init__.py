"""What only a real GPU can show, as one command: parts that measure, one file of figures, one page made from it."""
