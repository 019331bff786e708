"""How learning to act is shown."""
