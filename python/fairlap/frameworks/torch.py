"""PyTorch, eager and through ``torch.compile``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy.typing as npt

from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    Answers,
    as_float32,
    batch_of,
    named_gradients,
    named_outputs,
    trained_names,
)
from fairlap.frameworks.adapter_parts.quantized.torch_quantized import quantized
from fairlap.frameworks.adapter_parts.ranks.torch_ranks import FSDP, join, shared, undivided, whole
from fairlap.frameworks.adapter_parts.torch_on_device import on_device, prepare_device
from fairlap.frameworks.adapter_parts.torch_settings import (
    integers_in_force,
    modes_of_a_thread,
    require_fitting,
    settings_in_force,
)
from fairlap.frameworks.contract import (
    RANKS,
    Collectives,
    Contestant,
    Fed,
    Framework,
    Phase,
    ProfiledCall,
    Profiler,
    Settings,
    TrainingState,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.compilation import NO_TYPES, Compilation, Types
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS, Loss
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

_TYPES: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}

BoundInMode = Callable[[Any, Callable[[], Any]], Callable[[], Any]]
"""Of a model and its bound forward pass, the call of a mode."""


class Torch(Framework):
    name = "torch"
    packages = ("torch==2.13.0",)  # on Linux the package index has the build with CUDA under the same name
    packages_in: ClassVar = {"int8": ("torchao==0.18.0",)}
    module = "torch"
    variants = ("", "compile", FSDP)
    rank_launcher = "torchrun"
    options: ClassVar = {
        "memory_format": ("contiguous", "channels_last"),
        "onednn": ("on", "off"),
        "interop_threads": (),
    }
    options_of: ClassVar = {"compile": {"mode": (), "freezing": ("on", "off")}}
    tunable: ClassVar = {
        "variant": ("compile", "compile:freezing=on", "compile:mode=max-autotune"),
        "memory_format": ("channels_last",),
        "onednn": ("off",),
    }
    tunable_on: ClassVar = {"cuda": {"variant": ("compile",), "memory_format": ("channels_last",)}}
    not_tuned: ClassVar = {
        "interop_threads": "models here run one operation after the other, so no second one could run alongside",
        "xnnpack": "PyTorch's builds for servers use it for no operation of a float model; race executorch",
    }
    modes = ("infer", "grad", "train")
    modes_of: ClassVar = {FSDP: ("train",)}  # what it divides is kept from step to step
    generates = True
    precisions = ("fp32", "fp16", "bf16", "autocast", "tf32", "int8")
    device_memory_limit = "torch.cuda.set_per_process_memory_fraction"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        kept = settings.cache_folder
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{kept}/inductor", "TRITON_CACHE_DIR": f"{kept}/triton"} if kept else {}
        return {"OMP_NUM_THREADS": str(settings.threads), "MKL_NUM_THREADS": str(settings.threads), **caches}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted, devices=("cpu", "cuda"))
        require_fitting(work, wanted)
        with phase("import"):
            import torch
        if wanted.device != "cpu":
            tf32 = work.precision == "tf32"
            prepare_device(wanted.device, wanted.device_memory_limit_bytes, self.packages[0], tf32=tf32)
        _use(wanted)
        self._version = str(torch.__version__)
        prepared = {"infer": self._inferring, "grad": self._differentiated, "train": self._training}
        return prepared[work.mode](work, wanted, phase)

    def _inferring(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        import torch

        # For the whole process: a context around each call would be timed with it.
        self._no_gradients = torch.inference_mode()
        self._no_gradients.__enter__()
        self._begin_autocast(work, wanted)
        with phase("build"):
            model = _built(work, wanted, slopes=False)
        if work.spec.continuation:
            return self._generating(work, wanted, model, phase)
        return self._called(work, wanted, model, phase, lambda held: held, lambda _model, bound: bound, _outputs)

    def _differentiated(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        self._begin_autocast(work, wanted)
        with phase("build"):
            model = _built(work, wanted)
        loss = _loss(model, work.spec.loss, _labels(work, wanted.device))
        return self._called(work, wanted, model, phase, lambda _held: loss, partial(_sloped, work), _gradients)

    def _training(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.rank is not None:
            with phase("connect"):
                join(wanted)
        with phase("build"):
            model = _built(work, wanted)
        return self._trained(work, wanted, model, phase)

    def _begin_autocast(self, work: Workload, wanted: Settings) -> None:
        """For the whole process, without its cache, which a context around each call would empty each time."""
        import torch

        if work.precision == "autocast":
            kind = wanted.device.partition(":")[0]
            self._autocast = torch.autocast(kind, dtype=torch.bfloat16, cache_enabled=False)
            self._autocast.__enter__()

    def _called(
        self,
        work: Workload,
        wanted: Settings,
        model: Any,
        phase: Phase,
        forward_of: Callable[[Any], Any],
        bound_in_mode: BoundInMode,
        answers: Callable[[Workload, Any], Answers],
    ) -> Contestant:
        """Prepare calls of ``forward_of`` the model, which may be quantized before."""
        compiled = wanted.variant == "compile"
        held, made = model, None
        if work.precision == "int8":
            if not compiled or wanted.device != "cpu":
                raise Unsupported("PyTorch runs quantized models through torch.compile, on x86: race torch:compile")
            with phase("convert"):
                held, made = quantized(work, model)
        forward = forward_of(held)
        bind_in_mode = partial(self._bind, work, wanted.device, bound_in_mode)
        uncompiled = forward
        if compiled:
            with phase("compile"):
                forward = _compiled(forward, wanted.options)
                bind_in_mode(held, forward, work.inputs)()  # the first call compiles
        bind = partial(bind_in_mode, held, forward)
        return Contestant(
            bind=bind,
            done=None,
            outputs=partial(answers, work),
            weights=dict if made else partial(_weights, work, model),
            in_force=settings_in_force(model, wanted) | (integers_in_force() if made else {}),
            quantization=made.quantization if made else None,
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            **on_device(wanted.device),
            fed=_fed(_runner(forward, _places(held, work)), wanted.device),
            profiler=Profiler(
                "torch.profiler", _record, partial(self._bind_to_profile, wanted, bind_in_mode, held, uncompiled)
            ),
            compilation=partial(_compilation, bind, wanted),
            in_thread=partial(modes_of_a_thread, work, wanted.device),
            shared_by_threads=True,
            # Compiled with its weights as constants, or quantized, it has copies of its own.
            deal=None if made or "freezing" in wanted.options or wanted.device != "cpu" else partial(_deal, model),
        )

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        from fairlap.frameworks.adapter_parts.ranks.torch_ranks import collectives

        with phase("import"):
            import torch
        self._version = str(torch.__version__)
        torch.set_num_threads(wanted.threads)
        with phase("join"):
            return collectives(wanted)

    def version(self) -> str:
        return self._version

    def _trained(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        from fairlap.frameworks.adapter_parts.training.torch_training import TorchTraining, in_autocast

        called, exchange = (model, undivided(wanted)) if wanted.rank is None else shared(model, wanted)
        loss = _loss_of_batch(called, work.spec.loss)
        if work.precision == "autocast":
            loss = in_autocast(loss, wanted.device)
        if wanted.variant == "compile":
            loss = _compiled(loss, wanted.options)
        training = TorchTraining(work, model, loss)
        places = _places(model, work) or [tensor.name for tensor in work.spec.inputs]

        def parts(tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], Any]:
            labels = _as_labels(tensors[LABELS], work.spec.loss) if LABELS in tensors else None
            return tuple([tensors[name] for name in places]), labels

        def bound(arrays: Arrays, types: Types = NO_TYPES) -> tuple[tuple[Any, ...], Any]:
            tensors = {name: _tensor(array).to(wanted.device) for name, array in arrays.items()}
            if work.precision in _TYPES:
                tensors = {
                    name: each if name == LABELS else _narrowed(each, work.precision) for name, each in tensors.items()
                }
            return parts(_in_types(tensors, types))

        def bind(arrays: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
            return partial(training.step, *bound(arrays, types))

        def answering(batches: Sequence[Arrays]) -> Callable[[], list[Answers]]:
            forward = in_autocast(model, wanted.device) if work.precision == "autocast" else model
            if wanted.variant == "compile":
                forward = _compiled(forward, wanted.options)
            return training.answering(forward, [bound(batch)[0] for batch in batches])

        if wanted.variant == "compile":
            with phase("compile"):
                bind(batch_of(work))()
                training.reset()
        read = partial(settings_in_force, model, wanted)
        in_force = in_autocast(read, wanted.device)() if work.precision == "autocast" else read()
        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda loss: {LOSS: as_float32(loss.detach().cpu().numpy())},
            weights=partial(_weights, work, model),
            in_force={**in_force, **training.in_force(), **({RANKS: exchange} if exchange else {})},
            training=TrainingState(training.state, training.reset, training.restore, answering, training.held_bytes),
            fed=_fed(lambda tensors: training.step(*parts(tensors)), wanted.device),
            profiler=Profiler("torch.profiler", _record),
            stream=on_device(wanted.device).get("stream"),
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            compilation=partial(_compilation, bind, wanted, trains=True),
        )

    def _generating(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        from fairlap.frameworks.adapter_parts.generation.torch_generation import growing, of_fixed_shape

        if wanted.variant == "compile":
            steps = of_fixed_shape(work, model, wanted.device, partial(_compiled, options=wanted.options))
        else:
            steps = growing(model, wanted.device)
        calls = answer_calls(work, steps)
        if wanted.variant == "compile":
            with phase("compile"):
                calls["bind"](work.inputs)()
        return Contestant(
            **calls,
            weights=partial(_weights, work, model),
            in_force=settings_in_force(model, wanted),
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            **on_device(wanted.device),
            profiler=Profiler("torch.profiler", _record),
            in_thread=partial(modes_of_a_thread, work, wanted.device),
            shared_by_threads=True,
        )

    def _bind_to_profile(
        self,
        wanted: Settings,
        bind: Callable[..., Callable[[], Any]],
        model: Any,
        forward: Callable[..., Any],
        inputs: Arrays,
    ) -> Callable[[], Any]:
        if wanted.variant == "compile":
            from fairlap.frameworks.adapter_parts.profiles.torch_profile import compiled_for_the_profiler

            forward = compiled_for_the_profiler(forward, wanted.options.get("mode"))
        return bind(model, forward, inputs)

    def _bind(
        self,
        work: Workload,
        device: str,
        in_mode: BoundInMode,
        model: Any,
        forward: Callable[..., Any],
        inputs: Arrays,
        types: Types = NO_TYPES,
    ) -> Callable[[], Any]:
        tensors = {name: _tensor(array).to(device) for name, array in inputs.items()}
        if work.precision in _TYPES:
            tensors = {name: _narrowed(each, work.precision) for name, each in tensors.items()}
        tensors = _in_types(tensors, types)
        # By place where the model allows it: names cost 0.4 us a call.
        places = _places(model, work)
        bound = partial(forward, *(tensors[name] for name in places)) if places else partial(forward, **tensors)
        return in_mode(model, bound)


def _sloped(work: Workload, model: Any, bound: Callable[[], Any]) -> Callable[[], Any]:
    parameters = dict(model.named_parameters())
    return _loss_and_gradients(bound, [parameters[name] for name in trained_names(work.spec)])


def _built(work: Workload, wanted: Settings, *, slopes: bool = True) -> Any:
    import torch

    implementation = work.implementation("torch")
    model = implementation.build(work.weights).requires_grad_(slopes).to(wanted.device)
    fixed = {weight.name for weight in work.spec.weights if not weight.trained}
    for name, parameter in model.named_parameters() if fixed else ():
        parameter.requires_grad_(parameter.requires_grad and name not in fixed)
    if wanted.options.get("memory_format", getattr(implementation, "MEMORY_FORMAT", "")) == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    return model.to(getattr(torch, _TYPES[work.precision])) if work.precision in _TYPES else model


def _deal(model: Any) -> None:
    for held in (*model.parameters(), *model.buffers()):
        held.data = held.data.clone()


def _record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from fairlap.frameworks.adapter_parts.profiles.torch_profile import record

    return record(call, calls, trace)


def _narrowed(tensor: Any, precision: Precision) -> Any:
    import torch

    return tensor.to(getattr(torch, _TYPES[precision])) if tensor.is_floating_point() else tensor


def _in_types(tensors: Mapping[str, Any], types: Types) -> dict[str, Any]:
    import torch

    return {name: each.to(getattr(torch, types[name])) if name in types else each for name, each in tensors.items()}


def _places(model: Any, work: Workload) -> list[str]:
    """List the inputs' names in the order of the model's arguments; none where the model does not name them all."""
    places = list(signature(model.forward).parameters)
    return places if sorted(places) == sorted(work.inputs) else []


def _runner(forward: Callable[..., Any], places: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    if places:
        return lambda tensors: forward(*[tensors[name] for name in places])
    return lambda tensors: forward(**tensors)


def _fed(run: Callable[[Mapping[str, Any]], Any], device: str) -> Fed:
    if device == "cpu":
        return Fed(_lent_tensor, run)
    from torch.utils.dlpack import from_dlpack  # it names the current stream, which waits for the copy

    return Fed(from_dlpack, run, device, lambda tensor: tensor.cpu().numpy())


def _lent_tensor(batch: Any) -> Any:
    """From the capsule, which takes half the time of a conversion from the batch."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack(batch.__dlpack__())


def _tensor(array: npt.NDArray[Any]) -> Any:
    """Shares the array's memory."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the array is read-only, and nothing writes to it
        return torch.from_numpy(array)


def _labels(work: Workload, device: str) -> Any:
    return None if work.labels is None else _as_labels(_tensor(work.labels), work.spec.loss).to(device)


def _as_labels(tensor: Any, kind: Loss) -> Any:
    """Classes as PyTorch takes them: int64, in one row except for a user's own loss; values as they are."""
    if tensor.is_floating_point():
        return tensor
    return tensor.long() if kind == "own" else tensor.reshape(-1).long()


def _use(wanted: Settings) -> None:
    """For the whole process, which may set its threads between operations only once."""
    import torch

    torch.set_num_threads(wanted.threads)
    between_operations = int(wanted.options.get("interop_threads", "1"))
    if torch.get_num_interop_threads() != between_operations:
        torch.set_num_interop_threads(between_operations)
    if "onednn" in wanted.options:
        torch.backends.mkldnn.set_flags(wanted.options["onednn"] == "on")


def _loss(model: Any, kind: Loss, labels: Any) -> Callable[..., Any]:
    """With the labels bound, since all calls have the same ones."""
    of_batch = _loss_of_batch(model, kind)

    def loss(*inputs: Any, **named: Any) -> Any:
        return of_batch(labels, *inputs, **named)

    return loss


def _loss_of_batch(model: Any, kind: Loss) -> Callable[..., Any]:
    from torch.nn.functional import cross_entropy, mse_loss

    def mean_square(_labels: Any, *inputs: Any, **named: Any) -> Any:
        return model(*inputs, **named)[0].float().square().mean()

    def square_error(labels: Any, *inputs: Any, **named: Any) -> Any:
        return mse_loss(model(*inputs, **named)[0].float(), labels)

    def mean_cross_entropy(labels: Any, *inputs: Any, **named: Any) -> Any:
        first = model(*inputs, **named)[0].float()
        rows = first if first.dim() == 2 else first.reshape(-1, first.shape[-1])  # a view is a further node
        return cross_entropy(rows, labels)

    if kind == "own":
        loss: Callable[..., Any] = model.own_loss
        return loss
    losses = {"mean_square": mean_square, "square_error": square_error, "cross_entropy": mean_cross_entropy}
    return losses[kind]


def _loss_and_gradients(bound: Callable[[], Any], trained: list[Any]) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    from torch.autograd import grad

    def step() -> tuple[Any, tuple[Any, ...]]:
        loss = bound()
        return loss, grad(loss, trained)

    return step


def _compiled(forward: Any, options: Mapping[str, str]) -> Any:
    import torch

    mode = options.get("mode")
    known = list(torch._inductor.list_mode_options()) if mode else []
    if mode and mode not in known:
        raise Unsupported(f"torch.compile has no mode {mode!r}; it has {', '.join(known)}")
    if "freezing" in options:  # for the whole process: torch.compile takes a mode or options, not both
        from torch._inductor import config

        config.freezing = options["freezing"] == "on"
    return torch.compile(forward, mode=mode)


def _compilation(bind: Callable[..., Callable[[], Any]], wanted: Settings, *, trains: bool = False) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.torch_compilation import compilation_of

    return compilation_of(bind, compiled=wanted.variant == "compile", trains=trains)


def _outputs(work: Workload, result: Any) -> Answers:
    return named_outputs(work.spec, [each.float().cpu().numpy() for each in result])


def _gradients(work: Workload, result: Any) -> Answers:
    loss, gradients = result
    by_name = zip(trained_names(work.spec), gradients, strict=True)
    return named_gradients(loss.detach().cpu(), {name: each.float().cpu().numpy() for name, each in by_name})


def _weights(work: Workload, model: Any) -> Answers:
    held = model.state_dict()
    return {weight.name: as_float32(whole(held[weight.name]).float().cpu().numpy()) for weight in work.spec.weights}
