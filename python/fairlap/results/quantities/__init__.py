"""The quantities of a run: those that rows hold by the names of options, and those compared besides the headline."""
