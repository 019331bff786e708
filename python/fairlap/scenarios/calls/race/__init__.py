"""How the calls of each mode are proven to do equal work."""
