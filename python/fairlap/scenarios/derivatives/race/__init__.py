"""What a race of derivatives makes of a request."""
