"""Where the points of a history come from, and how each is made ready to race: commits, and releases."""
