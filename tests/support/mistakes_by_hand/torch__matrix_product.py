import torch

print(torch.zeros(4, 17) @ torch.zeros(13, 6))  # mistake
