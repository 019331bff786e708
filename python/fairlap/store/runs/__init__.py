"""One run: its id, its file, its lock, and the names by which it is found."""
