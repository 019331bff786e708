"""From rows to a decision: which contestants meet the requirements, and which one suits a use."""
