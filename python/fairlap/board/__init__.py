"""A static site made of a store: models by frameworks by machines, each figure with its evidence."""
