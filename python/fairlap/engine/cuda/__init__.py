"""Timing on CUDA streams: requests, the measurement itself, its notices, floors and libraries."""
