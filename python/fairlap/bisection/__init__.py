"""Find the commit or release that made something slower, in as few races against the good end as it takes."""
