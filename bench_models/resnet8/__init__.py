"""MLPerf Tiny's image classification: a residual network for images of 32 pixels."""
