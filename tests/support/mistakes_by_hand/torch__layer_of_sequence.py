import torch
from torch import nn

model = nn.Sequential(
    nn.Linear(17, 19),
    nn.Linear(13, 23),  # mistake
    nn.Linear(23, 5),
)
model(torch.zeros(4, 17))
