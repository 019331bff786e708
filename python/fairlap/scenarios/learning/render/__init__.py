"""How training to a score is shown."""
