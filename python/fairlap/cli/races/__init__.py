"""From a command line to a race, its record and its answer."""
