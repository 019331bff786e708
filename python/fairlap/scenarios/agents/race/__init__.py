"""What a race of agents asks of a process, how an update is proven, and what it makes of a request."""
