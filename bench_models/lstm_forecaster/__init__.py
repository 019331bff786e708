"""A recurrent network that forecasts series."""
