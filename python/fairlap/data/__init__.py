"""What feeds a contestant while it is timed: fairlap's own feeder, or a pipeline of the framework's."""
