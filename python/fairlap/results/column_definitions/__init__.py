"""The columns of a row: name, meaning, unit and heading of each."""
