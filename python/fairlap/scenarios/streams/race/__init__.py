"""How blocks of servers that stream are planned and run."""
