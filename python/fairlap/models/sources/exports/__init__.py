"""Several files that are exports of one model, raced against each other."""
