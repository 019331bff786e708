"""What will run: the works and the plan that a request asks for."""
