"""Results within the page of a notebook, as part of it: no script, no page of their own, its colours."""
