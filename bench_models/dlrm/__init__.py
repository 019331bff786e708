"""A recommendation model: embedding bags beside numbers, and the products of all pairs."""
