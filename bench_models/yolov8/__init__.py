"""Detectors in the shape of YOLOv8, for images of 320 by 320 pixels."""
