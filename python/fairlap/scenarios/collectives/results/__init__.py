"""What a race of collective operations gives."""
