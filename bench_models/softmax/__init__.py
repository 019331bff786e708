"""One softmax over rows, an operation that moves more than it computes. It has no weights and so no gradients."""
