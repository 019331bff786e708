"""How frameworks report users' mistakes: planted ones are run, and what is printed of them is read by rules."""
