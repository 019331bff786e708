"""Contestants in containers: their images, how a worker starts in one, and its processes on this machine."""
