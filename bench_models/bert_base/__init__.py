"""BERT-base, uncased, with its pooler: twelve layers of masked self-attention, each normalised after it adds."""
