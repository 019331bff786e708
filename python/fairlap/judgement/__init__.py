"""One change of code against its base: keep it, discard it, or say that nothing is decided; for loops that try many."""
