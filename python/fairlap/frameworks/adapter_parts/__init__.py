"""What several adapters share: answers as NumPy arrays, threads, views of fed slots, graphs as files."""
