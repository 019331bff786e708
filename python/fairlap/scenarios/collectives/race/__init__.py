"""How collective operations are raced."""
