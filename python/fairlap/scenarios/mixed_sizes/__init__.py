"""Calls whose sizes change from call to call, as a file lists them."""
