"""TensorFlow: eagerly, as a graph, and as a graph that XLA compiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    Answers,
    answers_of_tensors,
    as_float32,
    batch_of,
    named_outputs,
    trained_names,
    weights_of_tensors,
)
from fairlap.frameworks.adapter_parts.devices.tensorflow_on_device import on_device, prepare_device
from fairlap.frameworks.adapter_parts.differentiated import (
    DIRECTION,
    DIRECTIONS,
    direction_in_force,
    implementation_of,
)
from fairlap.frameworks.adapter_parts.losses.tensorflow_losses import loss_of_batch, loss_of_labelled, with_gradients
from fairlap.frameworks.adapter_parts.own_threads import threads_named
from fairlap.frameworks.adapter_parts.ranks import in_parts
from fairlap.frameworks.adapter_parts.ranks.tensorflow_ranks import strategy_of
from fairlap.frameworks.adapter_parts.tensors.tensorflow_tensors import TYPES, lent_tensor, tensors_of
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Collectives,
    Contestant,
    Fed,
    Framework,
    Phase,
    Settings,
    TrainingState,
    Unsupported,
    refuse_what_is_unknown,
    whole_option,
)
from fairlap.frameworks.contract_parts.compilation import NO_TYPES, Compilation, Types
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler
from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES, modes_in
from fairlap.models.workload import Workload

_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
_SWITCH = {"on": "1", "off": "0"}


class TensorFlow(Framework):
    name = "tensorflow"
    packages = ("tensorflow==2.21.0",)
    packages_on: ClassVar = {"cuda": ("tensorflow[and-cuda]==2.21.0",)}
    module = "tensorflow"
    variants = ("", "graph", "xla")
    options: ClassVar = {"onednn": ("on", "off"), "interop_threads": (), DIRECTION: DIRECTIONS}
    tunable: ClassVar = {"variant": ("graph", "xla", "graph:interop_threads={threads}"), "onednn": ("off",)}
    tunable_on: ClassVar = {"cuda": {"variant": ("graph", "xla")}}
    not_tuned: ClassVar = {"memory_format": "TensorFlow's convolutions on the CPU know one, channels last"}
    devices = ("cpu", "cuda")
    modes = ("infer", "grad", "train", *modes_in("tensorflow"))
    generates = True
    precisions = ("fp32", "fp16", "bf16", "autocast", "tf32")
    no_precision: ClassVar = {"int8": "it quantizes for LiteRT only: race litert"}
    device_memory_limit = "tf.config.LogicalDeviceConfiguration(memory_limit=)"
    rank_launcher = "processes"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        on_cpu = settings.device == "cpu"
        kept = settings.cache_folder if settings.variant == "xla" else ""
        return {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **({"CUDA_VISIBLE_DEVICES": ""} if on_cpu else {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
            "TF_NUM_INTRAOP_THREADS": str(settings.threads),
            "TF_NUM_INTEROP_THREADS": settings.options.get("interop_threads", "1"),
            "OMP_NUM_THREADS": str(settings.threads),
            **({"TF_XLA_FLAGS": f"--tf_xla_persistent_cache_directory={kept}"} if kept else {}),
            **({_ONEDNN: _SWITCH.get(onednn, onednn)} if (onednn := settings.options.get("onednn")) else {}),
        }

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        interop_threads = whole_option(wanted.options, "interop_threads", wanted.threads)
        if work.precision == "autocast" and (wanted.variant != "graph" or wanted.device != "cpu"):
            raise Unsupported(
                "tensorflow's automatic mixed precision rewrites graphs, to bfloat16 on a CPU only: race "
                "tensorflow:graph there"
            )
        with phase("import"):
            import tensorflow as tf
        if wanted.device != "cpu":
            install = self.packages_on["cuda"][0]
            tf32 = work.precision == "tf32"
            prepare_device(wanted.device, wanted.device_memory_limit_bytes, install, tf32=tf32)
        tf.config.threading.set_intra_op_parallelism_threads(wanted.threads)
        tf.config.threading.set_inter_op_parallelism_threads(interop_threads)
        self._version = str(tf.__version__)
        if work.precision == "autocast":
            tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
        strategy = _strategy(work, wanted, phase)
        implementation = implementation_of(work, wanted, "tensorflow")
        with phase("build"):
            model = implementation.build(work.weights, getattr(tf, TYPES.get(work.precision, "float32")))
        if work.spec.continuation:
            return _generating(work, wanted, model, implementation.canonical, phase)
        step, training = _STEPS.get(work.mode, _inferring)(work, wanted, model, implementation, strategy)
        function = None
        eager = step
        if wanted.variant:
            inputs = tensors_of(work, batch_of(work))
            with phase("trace"):
                function = _function(step, "graph" if strategy else wanted.variant)  # XLA compiles parts of its step
                step = function.get_concrete_function(inputs)  # it looks for no other trace on each call
            with phase("compile"):
                narrow = _narrow_operations(partial(step, inputs)) if work.precision == "autocast" else 0
                step(inputs)  # the first call optimizes the graph, and XLA compiles it
                if training is not None:
                    training.reset()

        in_force = _in_force(model, wanted) | direction_in_force(implementation, work)
        if work.precision == "autocast":
            in_force |= {"autocast": f"{narrow} operations in bfloat16"} | ({"precision": "autocast"} if narrow else {})
        return Contestant(
            bind=partial(_bind, work, step),
            deal=partial(_deal, model) if training is None and wanted.device == "cpu" else None,
            shared_by_threads=True,
            # On a CPU eager and graph calls return when they are complete, on a GPU when all is enqueued.
            done=None,
            outputs=partial(answers_of_tensors, work, implementation.canonical) if training is None else _loss_alone,
            weights=partial(weights_of_tensors, work, implementation.canonical, model.variables_by_name),
            in_force={**in_force, **({} if training is None else training.in_force())},
            training=None
            if training is None
            else TrainingState(
                training.state,
                training.reset,
                training.restore,
                partial(_answering, work, model, wanted.variant),
                training.held_bytes,
                training.hold if strategy is None else None,
            ),
            no_memory_because="TensorFlow keeps no statistics of memory on the CPU",
            fed=Fed(lent_tensor, step) if wanted.device == "cpu" else None,
            profiler=Profiler("tf.profiler", _record),
            compilation=partial(_compilation, work, eager, function, wanted.variant),
            **on_device(wanted.device),
        )

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        from fairlap.frameworks.adapter_parts.ranks.tensorflow_ranks import collectives

        with phase("import"):
            import tensorflow as tf
        self._version = str(tf.__version__)
        tf.config.threading.set_intra_op_parallelism_threads(wanted.threads)
        with phase("join"):
            return collectives(wanted)


def _inferring(_work: Workload, _wanted: Settings, model: Any, _implementation: Any, _strategy: Any) -> Step:
    return model.__call__, None


def _differentiated(work: Workload, _wanted: Settings, model: Any, _implementation: Any, _strategy: Any) -> Step:
    import tensorflow as tf

    trained = [model.variables_by_name[name] for name in trained_names(work.spec)]
    labels = None if work.labels is None else tf.constant(work.labels)
    loss = loss_of_batch(model, work.spec.loss)
    return with_gradients(lambda inputs: loss(labels, inputs), trained), None


def _trained(work: Workload, wanted: Settings, model: Any, implementation: Any, strategy: Any) -> Step:
    from fairlap.frameworks.adapter_parts.training.tensorflow_training import TensorFlowTraining

    # A model that is the same in training takes nothing that asks for it.
    other = work.spec.has_statistics() or getattr(implementation, "distinguishes_training", False)
    loss = partial(loss_of_labelled, loss_of_batch(model, work.spec.loss, {"training": True} if other else {}))
    training = TensorFlowTraining(
        work, model, implementation.build, implementation.canonical, loss, strategy, wanted.variant == "xla"
    )
    return training.step, training


Step = tuple[Callable[..., Any], Any]
"""What a mode calls, and what is trained by it."""

_STEPS = {"grad": _differentiated, "train": _trained}


def _strategy(work: Workload, wanted: Settings, phase: Phase) -> Any:
    """None where ranks have nothing to exchange."""
    if wanted.rank is None or not MODES[work.mode].trains:
        return None
    with phase("join"):
        return strategy_of(wanted.rank, wanted.device)


def _generating(work: Workload, wanted: Settings, model: Any, canonical: Any, phase: Phase) -> Contestant:
    import tensorflow as tf

    from fairlap.frameworks.adapter_parts.generation.tensorflow_generation import generation

    if work.precision == "autocast":
        raise Unsupported("tensorflow's automatic mixed precision is for calls of one graph here; race bf16")
    kind = getattr(tf, TYPES.get(work.precision, "float32"))
    calls = answer_calls(work, generation(work, model, kind, wanted.variant, phase))
    if wanted.variant:
        with phase("compile"):
            calls["bind"](work.inputs)()  # the first call optimizes the graphs, and XLA compiles them
    return Contestant(
        **calls,
        shared_by_threads=True,
        weights=partial(weights_of_tensors, work, canonical, model.variables_by_name),
        in_force=_in_force(model, wanted),
        no_memory_because="TensorFlow keeps no statistics of memory on the CPU",
        profiler=Profiler("tf.profiler", _record),
        **on_device(wanted.device),
    )


def _record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from fairlap.frameworks.adapter_parts.profiles.tensorflow_profile import record

    return record(call, calls, trace)


def _function(step: Callable[[Any], Any], variant: str) -> Any:
    """Make a function without autograph.

    Autograph writes the rewritten source into the temporary folder and, since workers end at once, would leave it
    there.
    """
    import tensorflow as tf

    def of_inputs(inputs: Any) -> Any:
        return step(inputs)  # without what else it may take, which a concrete function would ask for

    return tf.function(of_inputs, autograph=False, jit_compile=variant == "xla")


def _compilation(work: Workload, eager: Callable[[Any], Any], function: Any, variant: str) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.tensorflow_compilation import compilation_of

    return compilation_of(
        function,
        variant,
        again=partial(_function, eager, variant),
        inputs=partial(tensors_of, work, batch_of(work)),
        bind=partial(_bind, work, eager if function is None else function),
    )


def _narrow_operations(call: Callable[[], Any]) -> int:
    """Of the graph that runs: TensorFlow rewrites it at the first call, and shows it in that call's metadata alone."""
    import tensorflow as tf
    from tensorflow.python.eager import context  # nothing public asks for the metadata of a function's call

    here = context.context()
    here.enable_run_metadata()
    try:
        call()
        graphs = here.export_run_metadata().partition_graphs
    finally:
        here.disable_run_metadata()
    narrow = tf.bfloat16.as_datatype_enum
    return sum("T" in node.attr and node.attr["T"].type == narrow for graph in graphs for node in graph.node)


def _answering(work: Workload, model: Any, variant: str, batches: Sequence[Arrays]) -> Callable[[], list[Answers]]:
    """Answers to these batches with what the model has learnt by then."""
    tensors = [tensors_of(work, batch) for batch in batches]
    answer = model.__call__
    if variant:
        answer = _function(answer, variant).get_concrete_function(tensors[0])
    return lambda: [named_outputs(work.spec, [each.numpy() for each in answer(batch)]) for batch in tensors]


def _bind(work: Workload, step: Callable[[Any], Any], inputs: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
    import tensorflow as tf

    tensors = tensors_of(work, inputs)
    return partial(step, {**tensors, **{name: tf.cast(tensors[name], kind) for name, kind in types.items()}})


def _deal(model: Any) -> None:
    """Deal memory again: a variable takes over the memory of what it is assigned."""
    import tensorflow as tf

    for variable in model.variables_by_name.values():
        variable.assign(tf.constant(variable.numpy()))


def _loss_alone(loss: Any) -> dict[str, Any]:
    return {LOSS: as_float32(loss.numpy())}


def _in_force(model: Any, wanted: Settings) -> dict[str, str]:
    import tensorflow as tf

    names = {tf.float32: "fp32", tf.float16: "fp16", tf.bfloat16: "bf16", tf.dtypes.experimental.float8_e4m3fn: "fp8"}
    names |= dict.fromkeys((tf.int8, tf.uint8, tf.int16), "int8")  # steps
    kinds = {variable.dtype for variable in model.variables_by_name.values()} - {tf.int32, tf.int64, tf.bool}
    held = " and ".join(sorted({names.get(kind, kind.name) for kind in kinds})) or NO_WEIGHTS
    if wanted.device != "cpu" and held == "fp32" and tf.config.experimental.tensor_float_32_execution_enabled():
        held = "tf32"
    found = {
        "threads": str(tf.config.threading.get_intra_op_parallelism_threads()),
        "precision": held,
        "interop_threads": str(tf.config.threading.get_inter_op_parallelism_threads()),
        "execution": {"": "eager", "graph": "graph", "xla": "XLA"}[wanted.variant],
        "synchronous": str(tf.config.experimental.get_synchronous_execution()).lower(),
        "onednn": _onednn(),
        **in_parts(wanted.rank),
    }
    if wanted.device != "cpu":
        found["device"] = ", ".join(device.name for device in tf.config.get_visible_devices("GPU"))
        found["tf32"] = "on" if tf.config.experimental.tensor_float_32_execution_enabled() else "off"
    if pool := threads_named("tf_XLAEigen"):
        found["xla_threads"] = str(pool)
    return found


def _onednn() -> str:
    """Nothing public reports it."""
    try:
        from tensorflow.python.util._pywrap_util_port import IsMklEnabled
    except ImportError:  # not public, and may go
        return f"{_ONEDNN}={os.environ.get(_ONEDNN, '')}, requested, not readable"
    return "on" if IsMklEnabled() else "off"
