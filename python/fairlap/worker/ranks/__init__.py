"""A contestant that runs as several processes, its ranks: how they are started, conducted and ended."""
