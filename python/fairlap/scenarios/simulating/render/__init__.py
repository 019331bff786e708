"""How a race of simulations is shown."""
