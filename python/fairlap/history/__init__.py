"""Did it get slower? Between two saved runs, or between two contestants of one."""
