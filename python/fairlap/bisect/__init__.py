"""Find the commit of a history that made a program slower, by racing what tells most against the good end."""
