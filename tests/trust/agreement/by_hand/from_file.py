"""From file to answer as a user of PyTorch writes it: ``from_file.py TASK FOLDER``.

A sample is the mean over all files of one pass.
"""

import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns

import torch
from timing import REFILL_S, TURN_S, answer, turns, warm_up

TASK = import_module(sys.argv[1])
FILES = sorted(each for each in Path(sys.argv[2]).iterdir() if each.is_file())


def main():
    torch.set_num_threads(1)
    module, _ = TASK.model()

    def pass_over_files():
        for file in FILES:
            value = file
            for stage in TASK.STAGES:
                value = stage(value)
            with torch.inference_mode():
                scores = module(torch.from_numpy(value))
            TASK.best({"scores": scores.numpy()})

    warm_up(pass_over_files)
    for _ in turns():
        warm_up(pass_over_files, REFILL_S)
        taken_ns, until_ns = [], perf_counter_ns() + int(TURN_S * 1e9)
        while not taken_ns or perf_counter_ns() < until_ns:
            began_ns = perf_counter_ns()
            pass_over_files()
            taken_ns.append((perf_counter_ns() - began_ns) / len(FILES))
        answer(taken_ns)


if __name__ == "__main__":
    main()
