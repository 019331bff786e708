"""What a user gives besides the model: inputs, labels and groups, from files or a function."""
