"""Time against error of solvers of differential equations."""
