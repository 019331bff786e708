"""A pole on a cart that is pushed left or right."""
