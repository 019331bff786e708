"""fairlap's own declarations of NVIDIA's interfaces, compared with NVIDIA's headers."""
