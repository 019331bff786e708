"""What a race over a mix of sizes asks of a process, and what it makes of a request."""
