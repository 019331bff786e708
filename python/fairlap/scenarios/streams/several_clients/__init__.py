"""A load that several client processes share, on this machine or on others."""
