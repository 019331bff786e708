"""The columns of a race from file to answer."""
