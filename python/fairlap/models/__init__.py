"""Models, their weights and inputs, and the checks of their answers."""
