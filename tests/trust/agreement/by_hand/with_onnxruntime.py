"""Loops as a user of ONNX Runtime writes them: the arguments are the scenario, the threads, and the model's file."""

import sys
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import onnxruntime
from sizes import BATCH, LENGTHS, WIDTH
from timing import (
    answer,
    of_items,
    run,
    search_largest_rate,
    time_calls,
    time_fed_batches,
    time_mix,
    time_requests,
    turns,
)

DRAW = np.random.default_rng(1)


def session():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.add_free_dimension_override_by_name("batch", BATCH)  # of a file that leaves it open
    return onnxruntime.InferenceSession(FILE, options, providers=["CPUExecutionProvider"])


def images(batch):
    return DRAW.standard_normal((batch, 3, 64, 64)).astype(np.float32)


def bound(model, batch):
    binding = model.io_binding()
    binding.bind_ortvalue_input("image", onnxruntime.OrtValue.ortvalue_from_numpy(images(batch)))
    binding.bind_output("logits")
    return binding


def latency():
    model = session()
    time_calls(partial(model.run_with_iobinding, bound(model, 8)))


def forecast():
    """Time forecasts of eight sets of series."""
    model = session()
    binding = model.io_binding()
    history = DRAW.standard_normal((8, 96, 7)).astype(np.float32)
    binding.bind_ortvalue_input("history", onnxruntime.OrtValue.ortvalue_from_numpy(history))
    binding.bind_output("forecast")
    time_calls(partial(model.run_with_iobinding, binding))


def recurrent_forecast():
    """Time the same of a graph of LSTMs."""
    forecast()


def one_image():
    model = session()
    return of_items(model.run_with_iobinding, lambda: bound(model, 1))


def fed():
    """Time batches that are taken from a large array in random order."""
    model = session()
    time_fed_batches(images(680), lambda batch: model.run(["logits"], {"image": batch}))


def at_rate():
    time_requests(one_image())


def largest_rate():
    search_largest_rate(one_image())


def mix():
    """Time calls of an open size, each on one of two inputs."""
    model = session()

    def of_length(length):
        bindings = []
        for _ in range(2):
            tokens = DRAW.standard_normal((1, length, WIDTH)).astype(np.float32)
            binding = model.io_binding()
            binding.bind_ortvalue_input("tokens", onnxruntime.OrtValue.ortvalue_from_numpy(tokens))
            binding.bind_output("answer")
            bindings.append(binding)
        following = cycle(bindings)
        return lambda: model.run_with_iobinding(next(following))

    time_mix({length: of_length(length) for length in LENGTHS}, LENGTHS)


def score():
    """Answer with the share of the items whose best class is the right one."""
    model, folder = session(), Path(FILE).parent
    items, classes = np.load(folder / "items.npy"), np.load(folder / "classes.npy")
    parts = np.split(items, len(items) // BATCH)
    for _ in turns():
        best = np.concatenate([model.run(["logits"], {"image": part})[0].argmax(axis=1) for part in parts])
        answer([float(np.mean(best == classes))])


def generation():
    """Time an answer: a prompt of 32 characters and 16 more, each read before the next is asked for."""
    model = session()
    places = [each.name for each in model.get_inputs()[1:]]
    _, heads, _, width = model.get_inputs()[1].shape
    empty = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, heads, 0, width), np.float32))
    prompt = DRAW.integers(96, size=(1, 32)).astype(np.int32)

    def step(tokens, caches):
        binding = model.io_binding()
        binding.bind_ortvalue_input("input_ids", onnxruntime.OrtValue.ortvalue_from_numpy(tokens))
        for name, cache in zip(places, caches, strict=True):
            binding.bind_ortvalue_input(name, cache)
        for each in model.get_outputs():
            binding.bind_output(each.name, "cpu")
        model.run_with_iobinding(binding)
        logits, *caches = binding.get_outputs()
        return int(logits.numpy().argmax()), caches

    def answer():
        chosen, caches = step(prompt, [empty] * len(places))
        for _ in range(15):
            chosen, caches = step(np.array([[chosen]], np.int32), caches)
        return chosen

    time_calls(answer)


if __name__ == "__main__":
    FILE, THREADS = sys.argv.pop(3), int(sys.argv[2])
    scenarios = (latency, forecast, recurrent_forecast, fed, mix, score, at_rate, largest_rate, generation)
    run({each.__name__: each for each in scenarios})
