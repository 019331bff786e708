"""Two chemicals that react and diffuse over a square."""
