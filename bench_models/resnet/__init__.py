"""ResNets v1.5: residual blocks of two or three convolutions, where a 3x3 one carries the stride."""
