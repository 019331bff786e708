"""How a load on servers that stream is shown."""
