"""PyTorch's own static quantization (PT2E) for x86, which torch.compile turns into products of integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile, quantized_file
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

_INTEGER_PRODUCTS = ("qlinear_weight_prepack_matcher_count", "qconv_weight_prepack_matcher_count")


def quantized(work: Workload, model: Any) -> tuple[Any, QuantizedFile]:
    """Quantize the model to a program, which torch.compile takes, and return the file that holds it too."""
    import torch

    try:
        import torchao
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer
    except ModuleNotFoundError:
        raise Unsupported("torch is quantized by the package torchao; install it") from None
    import torch._inductor.config

    def write(file: Path) -> None:
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        # Tensors of inference mode cannot be exported.
        with torch.inference_mode(False), torch.no_grad():
            inputs = _tensors(work.inputs)
            quantizer = x86_inductor_quantizer.X86InductorQuantizer()
            quantizer.set_global(x86_inductor_quantizer.get_default_x86_inductor_quantization_config())
            observed = prepare_pt2e(torch.export.export(model, (), inputs, strict=False).module(), quantizer)
            for own in work.calibration_sets():
                observed(**_tensors(own))
            torch.export.save(torch.export.export(convert_pt2e(observed), (), inputs), file)

    made = quantized_file(work, "PyTorch's PT2E", f"{torch.__version__} {torchao.__version__}", "model.pt2", write)
    torch._inductor.config.freezing = True  # weights are packed for products of integers only where they are constants
    with torch.inference_mode(False), torch.no_grad():
        return _by_name(torch.export.load(made.file).module()), made


def _by_name(program: Any) -> Any:
    """Wrap a program to take its inputs by name, as it was exported, although it shows the names of places."""
    import torch

    class ByName(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.program = program

        def forward(self, **inputs_by_name: Any) -> Any:
            return self.program(**inputs_by_name)

    return ByName()


def integer_products() -> int:
    """How many torch.compile made in this process."""
    from torch._dynamo.utils import counters

    return sum(counters["inductor"][name] for name in _INTEGER_PRODUCTS)


def _tensors(arrays: Arrays) -> dict[str, Any]:
    import torch

    return {name: torch.tensor(array) for name, array in arrays.items()}
