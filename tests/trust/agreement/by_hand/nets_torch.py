"""Networks as users of PyTorch write them."""

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden):
        query, key, value = (
            part(hidden).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        return self.out(scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.attention = Attention(width, heads)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden):
        hidden = hidden + self.attention(self.before(hidden))
        return hidden + self.narrow(gelu(self.wide(self.between(hidden))))


class VisionTransformer(nn.Module):
    """The smallest one, whose patches have 16 pixels."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.of_class = nn.Parameter(torch.randn(1, 1, 192))
        self.positions = nn.Parameter(torch.randn(1, 197, 192))
        self.layers = nn.Sequential(*(Layer(192, 3) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(192, 1e-6), nn.Linear(192, 1000)

    def forward(self, image):
        patches = self.patches(image).flatten(2).transpose(1, 2)
        hidden = torch.cat((self.of_class.expand(len(image), -1, -1), patches), 1) + self.positions
        return self.head(self.norm(self.layers(hidden))[:, 0])


class RecurrentForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(7, 64, 2, batch_first=True), nn.Linear(64, 24 * 7)

    def forward(self, history):
        states, _ = self.lstm(history)
        return self.head(states[:, -1]).view(-1, 24, 7)
