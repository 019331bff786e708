"""Models that answer token by token, as sources."""
