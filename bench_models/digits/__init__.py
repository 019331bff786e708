"""A small convolutional net for the handwritten digits that come with scikit-learn."""
