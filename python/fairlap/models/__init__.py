"""What the work is: models, their weights and inputs, and how an answer is told right from wrong."""
