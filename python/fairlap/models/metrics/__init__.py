"""The metrics of a task, a file for each kind of labels; ``fairlap.models.task_metrics`` finds them by name."""
