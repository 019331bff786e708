"""What a load on servers that stream adds to a row."""
