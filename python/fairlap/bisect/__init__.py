"""Find the commit that made a program slower, in as few races against the good end as it takes."""
