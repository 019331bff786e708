"""How a race of solvers is shown."""
