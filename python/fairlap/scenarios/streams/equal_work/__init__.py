"""Whether servers did equal work: the tokens of their answers, what they keep, how far answers agree."""
