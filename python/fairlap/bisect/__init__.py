"""Which commit of a history made it slower: races of commits against the good end, picked by what they tell."""
