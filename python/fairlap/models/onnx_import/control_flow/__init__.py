"""Control flow: branches and loops that are put in place, or that become bodies which a library runs."""
