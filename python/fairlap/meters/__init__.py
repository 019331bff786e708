"""What is measured around the timed calls: memory, energy, disturbances."""
