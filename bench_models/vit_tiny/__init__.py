"""A vision transformer for 224 pixels, the smallest that was published."""
