"""Three reactions whose rates lie nine powers of ten apart."""
