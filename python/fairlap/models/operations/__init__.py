"""Single operations in the sizes of published lists: each is a model whose name holds its sizes."""
