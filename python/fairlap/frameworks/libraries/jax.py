"""JAX: a pure function, lowered and compiled ahead of time, so that both are timed separately.

Which leaves of a JAX model's parameters are trained. A model shapes its parameters as it likes; only it knows
the way back to the spec's names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    Answers,
    as_float32,
    batch_of,
)
from fairlap.frameworks.adapter_parts.devices.jax_on_device import on_device
from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.adapter_parts.differentiated import (
    DIRECTION,
    DIRECTIONS,
    direction_in_force,
    implementation_of,
)
from fairlap.frameworks.adapter_parts.jax_leaves import joined, joined_leaves, parted, trained_leaves, zeros_between
from fairlap.frameworks.adapter_parts.jax_settings import cache_in_force, environment_for
from fairlap.frameworks.adapter_parts.losses.jax_losses import loss_of_batch, loss_with
from fairlap.frameworks.adapter_parts.own_threads import threads_named
from fairlap.frameworks.adapter_parts.ranks import in_parts
from fairlap.frameworks.adapter_parts.ranks.jax_ranks import RankMesh, join
from fairlap.frameworks.adapter_parts.tensors.jax_arrays import (
    TYPES,
    fed_to,
    gradients_of,
    in_types,
    outputs_of,
    put,
    put_batch_of,
)
from fairlap.frameworks.adapter_parts.tensors.slot_views import SlotViews
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    RANKS,
    Collectives,
    Contestant,
    Framework,
    Phase,
    RankLauncher,
    Settings,
    TrainingState,
    Unsupported,
    device_number,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.compilation import NO_TYPES, Compilation, Types
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler
from fairlap.models.arrays import Arrays
from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.modes import modes_in
from fairlap.models.spec import LABELS
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

_NO_SUCH_PRODUCT = "is not supported by dot_general"
"""Of an algorithm of products that XLA lacks, such as that of jax.nn.dot_product_attention in fp16 on a CPU."""

_PRODUCTS: Mapping[Precision, str] = {"fp32": "highest", "tf32": "tensorfloat32"}  # on a GPU


class Jax(Framework):
    name = "jax"
    packages: ClassVar[tuple[str, ...]] = ("jax==0.10.2", "optax==0.2.8")
    packages_on: ClassVar = {"cuda": ("jax[cuda13]==0.10.2", "optax==0.2.8")}
    module = "jax"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    modes = ("infer", "grad", "train", *modes_in("jax"))
    generates = True
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "bf16", "tf32", "fp64")
    no_precision: ClassVar = {
        "autocast": "it leaves mixed precision to the program; there is none to switch on",
        "int8": "it has no quantization after training",
        "fp8": "it has no quantization after training",
    }
    options: ClassVar = {
        "async_dispatch": ("on", "off"),
        "ynnpack": ("on", "off"),  # what XLA calls for products, in XNNPACK's place
        "vector_width": ("128", "256", "512"),
        "jit": ("on", "off"),
        DIRECTION: DIRECTIONS,
    }
    tunable: ClassVar = {"async_dispatch": ("off",), "vector_width": ("512",), "ynnpack": ("off",)}
    tunable_on: ClassVar = {"cuda": {}}
    device_memory_limit = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    rank_launcher: ClassVar[RankLauncher] = "processes"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return environment_for(settings)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        _require_compiled(work, wanted)
        with phase("import"):
            import jax
        _configure(work, wanted)
        if wanted.rank is not None and work.training is not None:  # otherwise ranks have nothing to exchange
            with phase("join"):
                join(wanted.rank, wanted.device)
        device = _device(wanted.device)
        jax.config.update("jax_default_device", device)
        if wanted.device != "cpu" and work.precision in _PRODUCTS:  # otherwise it would multiply in TF32
            jax.config.update("jax_default_matmul_precision", _PRODUCTS[work.precision])
        self._version = str(jax.__version__)
        model = implementation_of(work, wanted, self.implementation or self.name)
        with phase("build"):
            leaves, tree = jax.tree.flatten(put(model.params(work.weights), work))
            inputs = put(dict(work.inputs), work)

        def canonical(arrays: list[Any]) -> dict[str, Any]:
            back: dict[str, Any] = model.canonical(jax.tree.unflatten(tree, [np.asarray(each) for each in arrays]))
            return back

        if work.training is not None:
            return _trained(work, wanted, model, tree, leaves, canonical, phase)
        if work.spec.continuation:
            return _generating(work, wanted, model, tree, leaves, canonical, phase)
        called = {"grad": _differentiated}.get(work.mode, _inferring)
        function, arguments, answers = called(work, model, tree, leaves, canonical)
        slots = SlotViews(work)
        step, compiled = _compiled(function, (*arguments, inputs), wanted, phase)

        def bind(arrays: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
            return partial(step, *arguments, in_types(put(dict(arrays), work), types))

        def bind_once(arrays: Arrays) -> Callable[[], Any]:
            return partial(step, *arguments, dict(arrays))  # which it puts on the device in a tenth of put's time

        def deal() -> None:
            nonlocal arguments
            arguments = jax.block_until_ready(jax.tree.map(partial(jax.numpy.array, copy=True), arguments))

        return Contestant(
            bind=bind,
            bind_once=None if work.precision in TYPES else bind_once,
            deal=deal if wanted.device == "cpu" else None,
            shared_by_threads=True,
            done=jax.block_until_ready,
            outputs=answers,
            weights=lambda: {name: as_float32(array) for name, array in canonical(leaves).items()},
            in_force=_in_force(leaves, wanted)
            | _ynnpack(compiled, wanted)
            | direction_in_force(model, work)
            | ({"jit": "off"} if compiled is None else {}),
            no_memory_because="JAX keeps no statistics of memory on the CPU",
            fed=fed_to(lambda arrays: step(*arguments, arrays), slots, wanted.device),
            profiler=Profiler("jax.profiler", _record),
            compilation=None
            if compiled is None
            else lambda: _compilation(step, lambda: step.lower(*arguments, put(dict(work.inputs), work)), bind),
            **({} if wanted.device == "cpu" else on_device(device)),
        )

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        from fairlap.frameworks.adapter_parts.ranks.jax_ranks import collectives

        with phase("import"):
            import jax
        self._version = str(jax.__version__)
        with phase("join"):
            return collectives(wanted, partial(_device, wanted.device))


def _configure(work: Workload, wanted: Settings) -> None:
    import jax

    if work.precision == "fp64":
        jax.config.update("jax_enable_x64", True)
    if "async_dispatch" in wanted.options:  # before the client of the CPU is made
        jax.config.update("jax_cpu_enable_async_dispatch", wanted.options["async_dispatch"] == "on")


Called = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any], Answers]]
"""The function of a mode, its arguments before the inputs, and the answers in what it returns."""


def _inferring(
    work: Workload, model: Any, tree: Any, leaves: list[Any], canonical: Callable[[list[Any]], dict[str, Any]]
) -> Called:
    import jax

    return model.forward, (jax.tree.unflatten(tree, leaves),), partial(outputs_of, work)


def _differentiated(
    work: Workload, model: Any, tree: Any, leaves: list[Any], canonical: Callable[[list[Any]], dict[str, Any]]
) -> Called:
    import jax

    trained = trained_leaves(work.spec, leaves, canonical)
    learnt, fixed = parted(leaves, trained)
    loss = partial(loss_with, loss_of_batch(model, work.spec.loss), partial(joined, tree, trained))
    answers = partial(gradients_of, work, canonical, partial(zeros_between, leaves, trained))
    return jax.value_and_grad(loss), (learnt, fixed, put(work.labels, work)), answers


def _generating(
    work: Workload,
    wanted: Settings,
    model: Any,
    tree: Any,
    leaves: list[Any],
    canonical: Callable[[list[Any]], dict[str, Any]],
    phase: Phase,
) -> Contestant:
    import jax

    from fairlap.frameworks.adapter_parts.generation.jax_generation import generation

    steps = generation(work, model, jax.tree.unflatten(tree, leaves), phase)
    return Contestant(
        **answer_calls(work, steps),
        shared_by_threads=True,
        weights=lambda: {name: as_float32(array) for name, array in canonical(leaves).items()},
        in_force=_in_force(leaves, wanted),
        no_memory_because="JAX keeps no statistics of memory on the CPU",
        profiler=Profiler("jax.profiler", _record),
        **({} if wanted.device == "cpu" else on_device(_device(wanted.device))),
    )


def _require_compiled(work: Workload, wanted: Settings) -> None:
    if wanted.options.get("jit") == "off" and (work.training is not None or work.spec.continuation):
        raise Unsupported("jax:jit=off is for calls alone: steps of training and answers are compiled")


def _compiled(
    function: Callable[..., Any], arguments: tuple[Any, ...], wanted: Settings, phase: Phase
) -> tuple[Any, Any]:
    """Return what to call, and what was compiled; None where each operation runs by itself."""
    import jax

    if wanted.options.get("jit") == "off":
        return function, None
    step = jax.jit(function)
    with phase("lower"):
        try:
            lowered = step.lower(*arguments)
        except ValueError as error:
            if _NO_SUCH_PRODUCT not in str(error):
                raise
            raise Unsupported(f"jax has no such product on this device: {error}") from None
    with phase("compile"):
        return step, lowered.compile()  # kept by JAX: the step finds it, and its own way in is 1 us shorter


def _record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from fairlap.frameworks.adapter_parts.profiles.jax_profile import record

    return record(call, calls, trace)


def _trained(
    work: Workload,
    wanted: Settings,
    model: Any,
    tree: Any,
    leaves: list[Any],
    canonical: Callable[[list[Any]], dict[str, Any]],
    phase: Phase,
) -> Contestant:
    import jax

    from fairlap.frameworks.adapter_parts.training.jax_training import JaxTraining

    learns = trained_leaves(work.spec, leaves, canonical)
    learnt, fixed = parted(leaves, learns)
    moving = work.spec.has_statistics() or getattr(model, "distinguishes_training", False)
    of_batch = loss_of_batch(model, work.spec.loss)

    def loss(learnt: Any, fixed: Any, batch: Any) -> Any:
        params = joined(tree, learns, learnt, fixed)
        if not moving:
            return of_batch(batch.get(LABELS), params, batch), fixed
        statistics: dict[str, Any] = {}
        found = of_batch(batch.get(LABELS), params, batch, statistics)
        return found, parted(jax.tree.leaves({**params, **statistics}), learns)[1]

    def named(learnt: list[Any], fixed: list[Any] | None) -> dict[str, Any]:
        whole = zeros_between(leaves, learns, learnt) if fixed is None else joined_leaves(learns, learnt, fixed)
        return canonical(whole)

    def parted_arrays(arrays: Arrays) -> tuple[list[Any], list[Any]]:
        return parted(jax.tree.leaves(model.params(arrays)), learns)

    def outputs(learnt: Any, fixed: Any, inputs: Any) -> Any:
        return model.forward(joined(tree, learns, learnt, fixed), inputs)

    def answering(batches: Sequence[Arrays]) -> Callable[[], list[Answers]]:
        answer = jax.jit(outputs)
        given = [put(dict(batch), work) for batch in batches]
        return lambda: [outputs_of(work, answer(*training.weights, batch)) for batch in given]

    mesh = None if wanted.rank is None else RankMesh(_device(wanted.device))
    training, slots = JaxTraining(work, learnt, fixed, loss, named, parted_arrays, mesh), SlotViews(work)

    def put_batch(arrays: Arrays) -> dict[str, Any]:
        part = put_batch_of(arrays, work)
        return part if mesh is None else mesh.joined(part)

    with phase("lower"):
        lowered = training.lowered(put_batch(batch_of(work)))
    with phase("compile"):
        compiled = lowered.compile()

    def bind(arrays: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
        return partial(training.step, in_types(put_batch(arrays), types))

    return Contestant(
        bind=bind,
        done=training.done,
        outputs=lambda loss: {LOSS: as_float32(loss)},
        weights=lambda: {name: as_float32(array) for name, array in canonical(leaves).items()},
        in_force={**_in_force(leaves, wanted), **_ynnpack(compiled, wanted), **training.in_force()}
        | ({} if mesh is None else {RANKS: mesh.in_force}),
        training=TrainingState(training.state, training.reset, training.restore, answering, training.held_bytes),
        fed=None if mesh else fed_to(training.step, slots, wanted.device),
        no_memory_because="JAX keeps no statistics of memory on the CPU",
        profiler=Profiler("jax.profiler", _record),
        compilation=lambda: _compilation(training.jitted, lambda: training.lowered(put_batch(batch_of(work))), bind),
        leave=None if mesh is None else jax.distributed.shutdown,
        **({} if wanted.device == "cpu" else on_device(_device(wanted.device))),
    )


def _compilation(jitted: Any, lowered: Callable[[], Any], bind: Callable[..., Callable[[], Any]]) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.jax_compilation import compilation_of

    return compilation_of(jitted, lowered, bind)


def _ynnpack(compiled: Any, wanted: Settings) -> dict[str, str]:
    """Read from what was compiled, which is long, so only where it was asked for."""
    if "ynnpack" not in wanted.options or compiled is None:
        return {}
    return {"ynnpack": "on" if "ynn_fusion" in compiled.as_text() else "off"}


def _device(wanted: str) -> Any:
    import jax

    platform = wanted.partition(":")[0]
    number = 0 if jax.distributed.is_initialized() else device_number(wanted)  # a rank sees its own device alone
    try:
        found = jax.local_devices(backend=platform)
    except RuntimeError:
        found = []
    if number >= len(found):
        built = any(find_spec(f"jax_{release}_plugin") for release in ("cuda13", "cuda12"))
        raise missing_device("jax", wanted, len(found), built_with_cuda=built, install=Jax.packages_on["cuda"][0])
    return found[number]


def _in_force(leaves: list[Any], wanted: Settings) -> dict[str, str]:
    import jax

    names = {"float32": "fp32", FP8: "fp8", **{kind: precision for precision, kind in TYPES.items()}}
    kinds = {str(leaf.dtype) for leaf in leaves if jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating)}
    held = " and ".join(sorted(names.get(kind, kind) for kind in kinds)) or NO_WEIGHTS
    if held == "fp32" and jax.config.values.get("jax_default_matmul_precision") == _PRODUCTS["tf32"]:
        held = "tf32"
    pool = threads_named("tf_XLAEigen")
    return {
        **({"threads": str(pool)} if pool else {"threads_asked": str(wanted.threads)}),
        "precision": held,
        "device": str(jax.config.values.get("jax_default_device")),
        "matmul_precision": str(jax.config.values.get("jax_default_matmul_precision") or "default"),
        "x64": str(jax.config.values.get("jax_enable_x64")).lower(),
        "async_dispatch": str(jax.config.values.get("jax_cpu_enable_async_dispatch")).lower(),
        "compilation_cache": cache_in_force(jax.config.values.get("jax_compilation_cache_dir")),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        **in_parts(wanted.rank),
    }
