import torch

w = torch.zeros(3, requires_grad=True)
y = w.exp()
z = y * 2
y += 1  # mistake
loss = (z + y * 0).sum()
loss.backward()
