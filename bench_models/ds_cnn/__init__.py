"""MLPerf Tiny's keyword spotting: separable convolutions over a second of speech."""
