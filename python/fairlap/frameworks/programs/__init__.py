"""Programs and servers as contestants, and the times that they report of themselves."""
