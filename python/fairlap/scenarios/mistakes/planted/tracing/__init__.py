"""Python within what a framework traces and compiles."""
