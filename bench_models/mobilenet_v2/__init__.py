"""MobileNetV2: inverted residual blocks around depthwise convolutions, with a linear bottleneck between them."""
