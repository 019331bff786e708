"""What a race under load asks of a process, and what it makes of a request."""
