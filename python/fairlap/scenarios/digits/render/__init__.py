"""How a race of digits is shown."""
