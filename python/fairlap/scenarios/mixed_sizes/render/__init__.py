"""How a race over a mix of sizes is shown."""
