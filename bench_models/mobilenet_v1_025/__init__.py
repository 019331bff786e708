"""MLPerf Tiny's visual wake words: a narrow MobileNetV1 for images of 96 pixels."""
