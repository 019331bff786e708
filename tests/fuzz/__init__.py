"""Foreign bytes thrown at everything of fairlap that reads some. `make fuzz` runs it for ten minutes."""
