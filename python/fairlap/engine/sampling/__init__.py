"""What the machine's sensors read beside a measurement: power, energy, clocks."""
