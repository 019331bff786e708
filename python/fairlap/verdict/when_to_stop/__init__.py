"""When enough has been measured, decided blind to who leads."""
