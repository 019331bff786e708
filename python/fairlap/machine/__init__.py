"""What this machine is, and files that every room reads or writes on it."""
