"""What contestants of any framework report of themselves."""
