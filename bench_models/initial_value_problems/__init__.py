"""What problems of differential equations share. Each problem is a folder of its own, with its rates in ``spec.py``."""
