"""How a race of calls is shown."""
