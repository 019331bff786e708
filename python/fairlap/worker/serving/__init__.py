"""A contestant behind a server."""
