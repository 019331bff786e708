"""A change against its base in one job: two checkouts that race, a comment with the verdict, an exit status."""
