"""What serves collective operations in a rank, and in what conducts the ranks."""
