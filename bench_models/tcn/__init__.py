"""A temporal convolutional network that forecasts series."""
