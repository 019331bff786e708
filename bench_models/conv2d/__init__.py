"""One convolution as image networks have dozens of: 3x3 pixels, 64 channels in and out."""
