"""What rounding to bfloat16 does to a reference and to its steps of training."""
