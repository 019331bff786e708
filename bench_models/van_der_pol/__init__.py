"""An oscillator that is stiff: its state relaxes three thousand times as fast as it drifts, and then jumps."""
