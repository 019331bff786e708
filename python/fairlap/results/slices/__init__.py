"""Whether a change of runtime, precision or model costs more on some of the data than on the rest."""
