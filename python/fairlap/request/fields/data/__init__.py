"""Data of the user: items, their labels and tables, and how they are read and changed."""
