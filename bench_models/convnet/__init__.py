"""A small convolutional net: three convolutions, an average over the image and a linear layer."""
