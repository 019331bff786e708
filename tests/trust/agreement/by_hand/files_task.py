"""Files as a user answers them: their bytes, a spectrum, a small model of PyTorch, and the best class."""

import numpy as np
import torch
from torch import nn

FRAMES, WIDTH, CLASSES = 256, 512, 10


def read(path):
    return np.resize(np.frombuffer(path.read_bytes(), np.uint8), FRAMES * WIDTH)


def spectrum(values):
    frames = values.astype(np.float32).reshape(FRAMES, WIDTH) * np.hanning(WIDTH).astype(np.float32)
    return np.log1p(np.abs(np.fft.rfft(frames)[:, 1:])).astype(np.float32)[None, None]


STAGES = (read, spectrum)


def best(outputs):
    [scores] = outputs.values()
    return int(scores.argmax())


def model():
    torch.manual_seed(7)
    layers = (
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )
    return nn.Sequential(*layers).eval(), (torch.zeros(1, 1, FRAMES, WIDTH // 2),)
