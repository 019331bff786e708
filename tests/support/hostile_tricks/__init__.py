"""Ways to pretend to work. ``test_hostile.py`` asserts how each is found."""
