"""Small programs that ask the hardware one question each. Each prints its answers as lines of JSON."""
