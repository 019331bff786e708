"""A convolution with its normalisation, in every framework: the building block of the image networks."""
