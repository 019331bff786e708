"""Models as a user of PyTorch writes them, with a batch of inputs: residual convolutions, and a small transformer."""

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, image):
        return image + torch.relu(self.norm(self.conv(image)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(32), nn.MaxPool2d(2), Residual(32))
        self.head = nn.Linear(32, 10)

    def forward(self, image):
        return self.head(self.blocks(torch.relu(self.stem(image))).mean(dim=(2, 3)))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden):
        batch, length, width = hidden.shape
        split = self.attention(self.before_attention(hidden)).view(batch, length, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, length, width)
        hidden = hidden + self.out(attended)
        return hidden + self.narrow(gelu(self.wide(self.before_mlp(hidden))))


class Transformer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.patches = nn.Linear(48, width)
        self.places = nn.Parameter(0.02 * torch.randn(1, 64, width))
        self.layers = nn.Sequential(Layer(width, 4), Layer(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, patches):
        return self.head(self.norm(self.layers(self.patches(patches) + self.places)).mean(dim=1))


def convolutions():
    return Network(), (torch.randn(8, 3, 64, 64),)


def transformer():
    return Transformer(), (torch.randn(8, 64, 48),)
