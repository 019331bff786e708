"""A network of messages along the edges of graphs."""
