"""One matrix product, of the size that fills a core but not the memory bus."""
