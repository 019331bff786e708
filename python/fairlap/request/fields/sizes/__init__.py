"""Sizes of inputs that change from call to call, and other inputs than the drawn ones."""
