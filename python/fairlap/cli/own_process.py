"""What `main` hands to its commands: whatever is started in this process is fairlap's. In a test it need not be."""

OWN_PROCESS = "own process"
