"""Loops as a user of LiteRT writes them: the arguments are the scenario, the threads, and the model's file."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from timing import run, time_calls


def latency():
    model = Interpreter(model_path=FILE, num_threads=THREADS)
    model.allocate_tensors()
    for tensor in model.get_input_details():
        image = np.random.default_rng(1).standard_normal(tensor["shape"]).astype(np.float32)
        model.set_tensor(tensor["index"], image)
    time_calls(model.invoke)


if __name__ == "__main__":
    FILE, THREADS = sys.argv.pop(3), int(sys.argv[2])
    run({"latency": latency})
