"""Steps of training by the reference: where right ones end, how far from there, and where known mistakes end."""
