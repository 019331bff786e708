"""Files and folders of fairlap: complete or absent, private, temporary, where a user keeps such things."""
