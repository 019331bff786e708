"""Model files that write the file ``target`` when they are read or run, if nothing keeps them from it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]


def plain_program(file: Path) -> Path:
    """One linear layer whose batch is free."""
    import torch

    batch = torch.export.Dim("batch", min=2, max=64)
    example = (torch.randn(5, 8),)
    torch.export.save(torch.export.export(torch.nn.Linear(8, 4), example, dynamic_shapes=({0: batch},)), file)
    return file


def changed_program(file: Path, change: Change, **members: bytes) -> Path:
    """Change the JSON of a plain program, and add further members."""
    plain = plain_program(file.with_name("plain.pt2"))
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename.endswith("models/model.json"):
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(member.filename, data)
        top = old.namelist()[0].partition("/")[0]
        for name, data in members.items():
            new.writestr(f"{top}/{name}", data)
    return file


def program_of_code(file: Path, code: str) -> Path:
    """Put code into the text of a size, which PyTorch evaluates."""

    def change(program: dict[str, Any]) -> None:
        values = program["graph_module"]["graph"]["tensor_values"]
        values["linear"]["sizes"][1] = {"as_expr": {"expr_str": code, "hint": {"as_int": 4}}}

    return changed_program(file, change)


def script_that_writes(file: Path, target: Path) -> Path:
    """TorchScript that creates a file when it is loaded."""
    import torch

    class Writer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path
            self.written = torch.zeros(1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        @torch.jit.export  # type: ignore[untyped-decorator]
        def __getstate__(self) -> tuple[str, bool]:
            return (self.path, self.training)

        @torch.jit.export  # type: ignore[untyped-decorator]
        def __setstate__(self, state: tuple[str, bool]) -> None:
            self.path = state[0]
            self.training = state[1]
            self.written = torch.from_file(self.path, True, 8, dtype=torch.uint8)

    torch.jit.script(Writer(str(target))).save(str(file))
    return file


def saved_model_that(folder: Path, act: Callable[[Any], Any]) -> Path:
    """Save a SavedModel of one function, which acts on its input."""
    import tensorflow as tf

    class Net(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec((2, 4), name="x")])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": act(x)}

    tf.saved_model.save(Net(), str(folder))
    return folder


def saved_model_that_writes(folder: Path, target: Path) -> Path:
    def write(x: Any) -> Any:
        import tensorflow as tf

        rows = tf.data.Dataset.from_tensors(tf.constant("owned"))._variant_tensor
        written = tf.raw_ops.DatasetToTFRecord(input_dataset=rows, filename=str(target), compression_type="")
        with tf.control_dependencies([written] if written is not None else []):
            return x * 2.0

    return saved_model_that(folder, write)


def saved_model_that_reads(folder: Path, secret: Path) -> Path:
    def read(x: Any) -> Any:
        import tensorflow as tf

        constant = tf.raw_ops.ImmutableConst(dtype=tf.uint8, shape=[4], memory_region_name=str(secret))
        return x + tf.cast(constant, tf.float32)

    return saved_model_that(folder, read)
