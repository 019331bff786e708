"""The columns of a race over a mix of sizes."""
