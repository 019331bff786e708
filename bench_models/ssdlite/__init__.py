"""A single-shot detector whose head is made of separable convolutions, on MobileNetV2."""
