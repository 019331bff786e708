"""Loops as a user of PyTorch writes them: the first argument is the scenario, the second the number of threads."""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from nets_torch import RecurrentForecaster, VisionTransformer
from timing import (
    of_items,
    run,
    search_largest_rate,
    time_calls,
    time_fed_batches,
    time_requests,
    time_steps_of_epochs,
    warm_up,
)
from torch import nn
from torch.nn.functional import cross_entropy, gelu, pad, scaled_dot_product_attention
from two_ranks import TwoRanks

DEVICE = os.environ.get("AGREEMENT_DEVICE", "cpu")


def wait():
    """Wait for the device: a call on a GPU is over when it is done, not when the call returns."""
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def waited(call):
    def until_done(*given):
        call(*given)
        wait()

    return until_done


class ConvNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(inward, outward, 3, stride, padding=1)
            for stride, inward, outward in zip((1, 2, 2), channels[:-1], channels[1:], strict=True)
        )
        self.head = nn.Linear(channels[-1], 10)

    def forward(self, image):
        for conv in self.convs:
            image = torch.relu(conv(image))
        return self.head(image.mean(dim=(2, 3)))


def convnet():
    return ConvNet((3, 32, 64, 64)).to(DEVICE)


def latency():
    model, image = convnet().eval(), torch.randn(8, 3, 64, 64, device=DEVICE)
    with torch.inference_mode():
        time_calls(waited(lambda: model(image)))


class Causal(nn.Module):
    def __init__(self, inward, dilation):
        super().__init__()
        self.edge = (2 * dilation, 0)
        self.first = nn.Conv1d(inward, 64, 3, dilation=dilation)
        self.second = nn.Conv1d(64, 64, 3, dilation=dilation)
        self.beside = nn.Conv1d(inward, 64, 1) if inward != 64 else nn.Identity()

    def forward(self, series):
        hidden = torch.relu(self.first(pad(series, self.edge)))
        return torch.relu(self.second(pad(hidden, self.edge)) + self.beside(series))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Causal(7 if step == 1 else 64, step) for step in (1, 2, 4, 8, 16)))
        self.head = nn.Linear(64, 24 * 7)

    def forward(self, history):
        return self.head(self.blocks(history.transpose(1, 2))[:, :, -1]).view(-1, 24, 7)


def forecast():
    """Time forecasts of eight sets of series."""
    model, history = Forecaster().to(DEVICE).eval(), torch.randn(8, 96, 7, device=DEVICE)
    with torch.inference_mode():
        time_calls(waited(lambda: model(history)))


def vision_transformer():
    """Time one image."""
    model, image = VisionTransformer().to(DEVICE).eval(), torch.randn(1, 3, 224, 224, device=DEVICE)
    with torch.inference_mode():
        time_calls(waited(lambda: model(image)))


def recurrent_forecast():
    """Time forecasts of eight sets of series."""
    model, history = RecurrentForecaster().to(DEVICE).eval(), torch.randn(8, 96, 7, device=DEVICE)
    with torch.inference_mode():
        time_calls(waited(lambda: model(history)))


def batch_of_8():
    return torch.randn(8, 3, 64, 64, device=DEVICE), torch.randint(10, (8,), device=DEVICE)


def grad():
    model, image, labels = convnet(), *batch_of_8()
    parameters = list(model.parameters())
    time_calls(waited(lambda: torch.autograd.grad(cross_entropy(model(image), labels), parameters)))


def stepping(model, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def step(image, labels):
        optimizer.zero_grad()
        loss = cross_entropy(model(image), labels)
        loss.backward()
        optimizer.step()

    return step


def train():
    step = stepping(convnet(), 1e-4)
    time_calls(waited(partial(step, *batch_of_8())))


def to_score():
    """Time steps of whole epochs on the digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.from_numpy((digits.images / 16).astype(np.float32)[:, None]).to(DEVICE)
    labels = torch.from_numpy(digits.target).to(DEVICE)
    step = stepping(ConvNet((1, 16, 32, 32)).to(DEVICE), 0.1)
    warm_up(partial(step, images[:32], labels[:32]))
    step = stepping(ConvNet((1, 16, 32, 32)).to(DEVICE), 0.1)

    def batches():
        order = torch.randperm(1437, device=DEVICE)[: 1437 // 32 * 32]
        return list(zip(images[order].split(32), labels[order].split(32), strict=True))

    time_steps_of_epochs(step, batches, wait)


def on_device(batch):
    batch = torch.from_numpy(batch)
    return batch if DEVICE == "cpu" else batch.pin_memory().to(DEVICE, non_blocking=True)


def fed():
    """Time batches that are taken from a large array in random order."""
    model = convnet().eval()
    with torch.inference_mode():
        time_fed_batches(torch.randn(680, 3, 64, 64).numpy(), waited(model), on_device)


def one_image():
    return of_items(waited(convnet().eval()), lambda: torch.randn(1, 3, 64, 64, device=DEVICE))


def at_rate():
    with torch.inference_mode():
        time_requests(one_image())


def largest_rate():
    with torch.inference_mode():
        search_largest_rate(one_image())


LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT, PROMPT, ANSWER = 3, 4, 64, 96, 64, 32, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden, past):
        batch, tokens, _ = hidden.shape
        parts = self.qkv(hidden).split(WIDTH, dim=2)
        query, key, value = (part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        attended = scaled_dot_product_attention(query, key, value, is_causal=past is None)
        return self.out(attended.transpose(1, 2).reshape(batch, tokens, WIDTH)), (key, value)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden):
        return self.narrow(gelu(self.wide(hidden), approximate="tanh"))


class Block(nn.Module):
    """Of the modules of which transformers' GPT-2 consists."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.perceptron = Attention(), Perceptron()

    def forward(self, hidden, past):
        attended, cache = self.attention(self.before(hidden), past)
        hidden = hidden + attended
        return hidden + self.perceptron(self.between(hidden)), cache


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, tokens, caches):
        known = caches[0][0].shape[2] if caches[0] is not None else 0
        hidden = self.tokens(tokens) + self.places.weight[known : known + tokens.shape[1]]
        kept = []
        for block, past in zip(self.blocks, caches, strict=True):
            hidden, cache = block(hidden, past)
            kept.append(cache)
        return (self.last(hidden[:, -1]) @ self.tokens.weight.T).argmax(-1), kept


def generation():
    """Time an answer: a prompt of 32 characters and 16 more, each read before the next is asked for."""
    model, prompt = Characters().eval().to(DEVICE), torch.randint(VOCABULARY, (1, PROMPT), device=DEVICE)

    def answer():
        chosen, caches = model(prompt, [None] * LAYERS)
        for _ in range(ANSWER - 1):
            chosen, caches = model(torch.tensor([[chosen.item()]], device=DEVICE), caches)
        return chosen.item()

    with torch.inference_mode():
        time_calls(answer)


def own_generation():
    """Time an answer of a model of transformers through its own cache: a prompt of 64 tokens and 32 more."""
    from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

    config = AutoConfig.from_pretrained(Path(__file__).with_name("small_llama"))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval().to(DEVICE)
    prompt = torch.randint(config.vocab_size, (1, 64), device=DEVICE)

    def answer():
        cache = DynamicCache(config=config)
        tokens = prompt
        for _ in range(32):
            logits = model(tokens, cache=cache, use_cache=True, logits_to_keep=1).logits
            tokens = torch.tensor([[logits[0, -1].argmax().item()]], device=DEVICE)
        return tokens

    with torch.inference_mode():
        time_calls(answer)


def of_a_user(name, mode):
    """Time calls, gradients or steps of a model that a user has written."""
    import users_torch

    model, inputs = getattr(users_torch, name)()
    labels = torch.randint(10, (8,))
    if mode == "infer":
        model.eval()
        with torch.inference_mode():
            time_calls(lambda: model(*inputs))
    elif mode == "grad":
        model.eval()
        parameters = list(model.parameters())
        time_calls(lambda: torch.autograd.grad(cross_entropy(model(*inputs), labels), parameters))
    else:
        time_calls(partial(stepping(model.train(), 1e-4), *inputs, labels))


def ranks():
    """Time a step that two processes of DistributedDataParallel share."""
    import torch.distributed as dist

    both = TwoRanks()
    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(convnet())
    both.time_steps(partial(stepping(model, 1e-4), torch.randn(4, 3, 64, 64), torch.randint(10, (4,))))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    torch.backends.cudnn.allow_tf32 = False  # fp32 is IEEE's in fairlap
    scenarios = (
        latency,
        forecast,
        vision_transformer,
        recurrent_forecast,
        grad,
        train,
        to_score,
        fed,
        at_rate,
        largest_rate,
        generation,
        own_generation,
        ranks,
    )
    users = {
        f"{name}_{mode}": partial(of_a_user, name, mode)
        for name in ("convolutions", "transformer")
        for mode in ("infer", "grad", "train")
    }
    run({**{each.__name__: each for each in scenarios}, **users})
