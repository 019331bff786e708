"""How a race takes the calls of a process in turn, and proves them."""
