"""Types and values of what is computed."""
