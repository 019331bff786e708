"""One multiply-add for each element of long arrays, so that memory bounds it. It has no weights and so no gradients."""
