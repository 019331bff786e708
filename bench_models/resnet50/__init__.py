"""ResNet-50 v1.5: residual blocks of three convolutions, where the 3x3 one carries the stride."""
