"""Load, precision, memory and a rank on a device: each race's figures against what is known without fairlap."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..driver import MIB, DriverCalls, PrimaryContext
from ..machine import ROOT
from ..record import Deadline, NotHere, PartRecord, Step
from .race import DEVICE, EAGER, RACED, file_for, run_fairlap

MODEL, BATCH = "convnet", 64
# Bits of the significand of products and sums: float32 24, TF32 and fp16 11, bf16 8. Errors grow with what is missing.
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
MOST_ERROR = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 1e-2, "bf16": 1e-1}
KNOWN_MIB, OFF_BY_MIB = 1024, 4  # a driver takes memory from the device in pieces of 2 MiB
FP8_BY, LEAST_OF_FP8 = "tensorrt", 89  # the framework that has fp8, and the compute capability of its products
FP8_ERROR = (1e-3, 0.25)  # a significand of 4 bits: more than bf16, and less than a wrong scale
P99, TRIAL_S = "20ms", 1.0
RANKED, OVER = ("torch", "jax"), "nccl"
_COMMUNICATOR = re.compile(r"nranks \d+ .*Init COMPLETE")  # a line of NCCL's log (its init.cc)


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = (
        Step("memory of a known size", 5, partial(_known_memory, record)),
        Step("precisions", 100, partial(_precisions, record, deadline)),
        Step("load", 90, partial(_load, record, deadline)),
        Step("fp8", 35, partial(_fp8, record, deadline)),
        Step("a rank over NCCL", 40, partial(_ranks, record, deadline)),
    )
    record.take(steps, deadline)


def _known_memory(record: PartRecord) -> None:
    """Take memory from the driver, and read by how much more of the device is in use."""
    from fairlap.machine.hardware.cuda_devices import used_bytes

    context, driver, memory = PrimaryContext(), DriverCalls(), ctypes.c_uint64()
    before = used_bytes(DEVICE)
    driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(KNOWN_MIB * MIB))
    after = used_bytes(DEVICE)
    driver.call("cuMemFree_v2", memory)
    context.close()
    if isinstance(before, str) or isinstance(after, str):
        raise RuntimeError(f"memory in use is not known: {before if isinstance(before, str) else after}")
    found_mib = (after - before) / MIB
    record.row("memory of a known size", taken_mib=KNOWN_MIB, found_mib=found_mib)
    record.goal(
        "memory of the device: 1 GiB that was taken",
        f"{KNOWN_MIB} to {KNOWN_MIB + OFF_BY_MIB} MiB",
        found_mib,
        "MiB",
        reached=KNOWN_MIB <= found_mib <= KNOWN_MIB + OFF_BY_MIB,
    )


def _precisions(record: PartRecord, deadline: Deadline) -> None:
    file = file_for("precisions.json")
    command = [
        sys.executable,
        "-m",
        "fairlap",
        "compare",
        MODEL,
        "--on",
        EAGER,
        "--device",
        DEVICE,
        "--batch",
        str(BATCH),
    ]
    command += ["--precision", ",".join(PRECISIONS), "--blocks", "1", "--seconds", "0.2", "--conditions", "as-found"]
    output = run_fairlap([*command, "--data-seed", "0", "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the race left no file: {output}")
    rows = json.loads(file.read_bytes())["rows"]
    keep_precisions(record, rows)
    keep_memory(record, rows)


def keep_precisions(record: PartRecord, rows: list[dict[str, Any]]) -> None:
    errors: dict[str, float] = {}
    for row in rows:
        kept = {name: row.get(name) for name in ("precision", "outcome", "error_relative")}
        record.row("precisions of one model", **kept, note=row.get("message") or "")
        if row["outcome"] == RACED and row.get("error_relative") is not None:
            errors[row["precision"]] = row["error_relative"]
    for precision in PRECISIONS:
        error = errors.get(precision)
        record.goal(
            f"{MODEL} in {precision}: its error",
            f"<= {MOST_ERROR[precision]:g}",
            error,
            "",
            reached=None if error is None else error <= MOST_ERROR[precision],
            why="" if error is not None else "it did not finish",
        )
    complete = len(errors) == len(PRECISIONS)
    record.goal(
        "errors in the order of their bits: fp32, then tf32 and fp16, then bf16",
        "in order",
        None,
        "",
        reached=errors["fp32"] < min(errors["tf32"], errors["fp16"]) <= errors["bf16"] if complete else None,
        why="" if complete else "not all finished",
    )


def _fp8(record: PartRecord, deadline: Deadline) -> None:
    from fairlap.engine.cuda.roofs import device_facts

    if missing := [each for each in (FP8_BY, "onnxruntime", "onnx") if find_spec(each) is None]:
        raise NotHere(f"{' and '.join(missing)} is not installed", FP8_BY)
    if (capability := device_facts(0).capability) < LEAST_OF_FP8:
        record.note(f"compute capability {capability / 10:.1f} has no products of fp8: there is nothing to prove")
        return
    file = file_for("fp8.json")
    command = [sys.executable, "-m", "fairlap", "compare", MODEL, "--on", FP8_BY, "--device", DEVICE]
    command += ["--batch", str(BATCH), "--precision", "fp8", "--blocks", "1", "--seconds", "0.2"]
    output = run_fairlap([*command, "--conditions", "as-found", "--data-seed", "0", "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the race left no file: {output}")
    [row] = json.loads(file.read_bytes())["rows"]
    keep_fp8(record, row)


def keep_fp8(record: PartRecord, row: dict[str, Any]) -> None:
    """Require the error of fp8, and layers that read it: TensorRT may compute in float32 what it has no kernel for."""
    types = (row.get("settings") or {}).get("types_of_layers", "")
    error = row.get("error_relative") if row["outcome"] == RACED else None
    kept = {"outcome": row["outcome"], "error_relative": error, "types_of_layers": types}
    record.row("fp8 of one model", **kept, note=row.get("message") or "")
    least, most = FP8_ERROR
    why = "" if error is not None else "it did not finish"
    reached = None if error is None else least <= error <= most
    record.goal(f"{MODEL} in fp8: its error", f"{least:g} to {most:g}", error, "", reached=reached, why=why)
    reads_fp8 = None if error is None else "read fp8" in types
    record.goal(f"{MODEL} in fp8: layers that read fp8", "some", None, "", reached=reads_fp8, why=why or types)


def keep_memory(record: PartRecord, rows: list[dict[str, Any]]) -> None:
    """Compare layers: what is in use is part of what the allocator keeps, and that of what the driver gave."""
    layers = ("allocator_live_peak", "allocator_reserved_peak", "driver")
    for row in rows:
        if row["outcome"] != RACED:
            continue
        held = row.get("memory_bytes") or {}
        sizes = [held.get(layer) for layer in layers]
        record.row("memory by layer", precision=row["precision"], **dict(zip(layers, sizes, strict=True)))
        known = [size for size in sizes if size is not None]
        record.goal(
            f"{MODEL} in {row['precision']}: memory in use, kept and taken from the device",
            "in order",
            None,
            "",
            reached=sorted(known) == known if len(known) == len(layers) else None,
            why="" if len(known) == len(layers) else "a layer has no size",
        )


def _load(record: PartRecord, deadline: Deadline) -> None:
    command = [sys.executable, "-m", "fairlap", "load"]
    shown = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    if "--device" not in shown.stdout:
        record.note("this fairlap serves load on the CPU only: there is nothing to prove on a device")
        return
    file = file_for("load.json")
    command += [MODEL, "--on", EAGER, "--device", DEVICE, "--p99", P99, "--trial", f"{TRIAL_S:g}s", "--blocks", "1"]
    output = run_fairlap([*command, "--conditions", "as-found", "--data-seed", "0", "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the load left no file: {output}")
    for row in json.loads(file.read_bytes())["rows"]:
        rate = row.get("largest_rate_per_s")
        record.row(
            "load", contestant=row["contestant"], outcome=row["outcome"], rate_per_s=rate, note=row.get("message")
        )
        record.goal(
            f"{row['contestant']}: requests served within {P99}",
            "> 0 per s",
            rate["value"] if isinstance(rate, dict) else rate,
            "per s",
            reached=None if rate is None else row["outcome"] == RACED,
        )


def _ranks(record: PartRecord, deadline: Deadline) -> None:
    """Let a world of one train over NCCL, which is all that one card allows."""
    file = file_for("ranks.json")
    here = ",".join(name for name in RANKED if find_spec(name) is not None)
    command = [sys.executable, "-m", "fairlap", "compare", "mlp", "--mode", "train", "--on", here, "--device", DEVICE]
    command += ["--processes", "1", "--hosts", "localhost", "--threads", "2", "--batch", str(BATCH), "--blocks", "1"]
    command += ["--seconds", "0.2", "--conditions", "as-found", "--data-seed", "0", "-o", str(file)]
    logs = file_for("nccl")
    for log in logs.parent.glob(f"{logs.name}.*"):
        log.unlink()
    output = run_fairlap(command, deadline, {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{logs}.%p"})
    if not file.exists():
        raise RuntimeError(f"the race left no file: {output}")
    keep_ranks(record, json.loads(file.read_bytes())["rows"])
    keep_communicators(
        record, {log.name: log.read_text(errors="replace") for log in logs.parent.glob(f"{logs.name}.*")}
    )


def keep_communicators(record: PartRecord, logs: dict[str, str]) -> None:
    """Count what NCCL itself made, in each process: XLA may leave out sums of a single rank, and needs none then."""
    made = {name: len(_COMMUNICATOR.findall(text)) for name, text in logs.items()}
    record.row("communicators of NCCL", processes=len(made), made=sum(made.values()))
    by = "/".join(map(str, sorted(made.values()))) or "none"
    record.note(f"NCCL made {sum(made.values())} communicators in {len(made)} processes that loaded it ({by})")


def keep_ranks(record: PartRecord, rows: list[dict[str, Any]]) -> None:
    """Its steps are checked as those of any contestant; over what it exchanged, its framework says."""
    for row in rows:
        settings = row.get("settings") or {}
        found = {name: settings.get(name, "") for name in ("ranks", "gpu", "device")}
        kept = {name: row[name] for name in ("contestant", "outcome")}
        record.row("a rank over NCCL", **kept, **found, note=row["message"])
        record.goal(
            f"{row['contestant']}: a world of one trains over NCCL",
            "right steps",
            None,
            "",
            reached=OVER in found["ranks"] if row["outcome"] == RACED else None,
            why="" if row["outcome"] == RACED else row["message"],
        )
