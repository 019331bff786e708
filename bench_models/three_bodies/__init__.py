"""Three bodies of one mass that chase each other along a figure of eight."""
