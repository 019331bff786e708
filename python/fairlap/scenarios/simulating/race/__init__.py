"""What a race of simulations makes of a request, and how its trajectories are compared."""
