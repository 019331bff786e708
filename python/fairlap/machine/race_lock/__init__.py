"""One race at a time on a core and on a GPU: who holds them, and waiting for them."""
