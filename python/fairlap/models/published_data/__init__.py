"""Data sets in the files in which they are published: MNIST, CIFAR, WebDataset, folders of images, GLUE and SQuAD."""
