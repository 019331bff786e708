"""How a race from file to answer is shown."""
