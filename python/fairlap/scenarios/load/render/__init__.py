"""How a race of load is shown."""
