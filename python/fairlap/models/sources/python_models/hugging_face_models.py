"""Models of transformers: which class a configuration names, its weights, and inputs that it takes.

Nothing is fetched, no code of a folder runs and nothing is unpickled, unless the user trusts it.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError, link_out_of_folder
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.inputs import shapes_of
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.sizes import fill_of, require_known_ranges, rows
from fairlap.models.spec import Dtype, Fill
from fairlap.request.fields.source import PREFIX_OF_TRANSFORMERS, Source
from fairlap.suggestions import with_hint

SEED = 0  # draws weights that the folder lacks
_COPIES = 2.0  # of the weights at once: as read, and in float64 those that an operator uses
_CONFIG, _GENERATION = "config.json", "generation_config.json"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")

# What bounds the values of an input, by its name; other names that end with _ids hold tokens.
_BOUNDS = {"token_type_ids": "type_vocab_size", "position_ids": "max_position_embeddings"}
_PLAINER = {"attn_implementation": "eager", "experts_implementation": "batched_mm"}
DIMS = ("batch", "sequence", "height", "width")


class LocalModel:
    """The files of a source."""

    def __init__(self, source: Source) -> None:
        path = Path(source.path.removeprefix(PREFIX_OF_TRANSFORMERS))
        self.name, self.trust = source.text, source.trust
        self.generates = source.generate is not None
        self.config_file = path / _CONFIG if path.is_dir() else path
        self.folder = self.config_file.parent if path.is_dir() else None
        if not self.config_file.is_file():
            raise SourceError(
                f"{source.text}: {self.config_file} does not exist; hf: takes a local folder or config.json, and "
                "fetches nothing"
            )

    def config(self) -> dict[str, Any]:
        try:
            found = json.loads(self.config_file.read_bytes())
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: {self.config_file.name} cannot be read: {described(error)}") from None
        if not isinstance(found, dict):
            raise SourceError(f"{self.name}: {self.config_file.name} is not a configuration of transformers")
        return found

    def files(self) -> tuple[Path, ...]:
        if self.folder is None:
            return (self.config_file,)
        code = sorted(self.folder.glob("*.py")) if self.trust else []
        pickles = sorted(self.folder.glob("pytorch_model*.bin*")) if self.trust else []
        generation = [file for file in (self.folder / _GENERATION,) if self.generates and file.is_file()]
        return (self.config_file, *generation, *sorted(self.folder.glob("*.safetensors*")), *pickles, *code)

    def auto_class(self, config: Any) -> str:
        """Name the class of transformers that finds the model of a configuration which names none."""
        if not self.generates:
            return "AutoModel"
        return "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"

    def readable(self) -> tuple[Path, ...]:
        """Its folder, and what links in it lead to within the cache of Hugging Face, whose snapshots are links."""
        if self.folder is None:
            return (self.config_file,)
        folder = self.folder.resolve()
        cache = folder.parents[1] / "blobs" if folder.parent.name == "snapshots" else folder
        targets = {file: file.resolve() for file in folder.rglob("*") if file.is_symlink()}
        if self.trust:
            return (folder, *targets.values())
        for file in map(folder.joinpath, [file.name for file in self.files()]):
            if file in targets and not targets[file].is_relative_to(cache):
                raise link_out_of_folder(f"{self.name}: {file.name}")
        return (folder, *(target for target in targets.values() if target.is_relative_to(cache)))

    def weights(self) -> str:
        """Of what kind they are: safetensors, pickle, or empty where there are none."""
        if self.folder is None:
            return ""
        if any((self.folder / name).is_file() for name in (_WEIGHTS, _INDEX)):
            return "safetensors"
        if any((self.folder / name).is_file() for name in _PICKLES):
            if not self.trust:
                raise SourceError(
                    f"{self.name} has its weights in {_PICKLES[0]}, a pickle, which is not read; save them as "
                    "safetensors, or add --trust",
                    code="E_SOURCE_TRUST",
                )
            return "pickle"
        return ""


def module_of(local: LocalModel, *, with_weights: bool, plainer: bool = False) -> tuple[Any, str]:
    """In eval mode and float32, and why its weights were drawn; empty where they were read.

    A ``plainer`` one computes attention and experts in the operators that exporters know best.
    """
    for name in _OFFLINE:
        os.environ[name] = "1"
    try:
        import torch
        import transformers
    except ModuleNotFoundError as error:
        raise SourceError(f"{local.name} is read with the package {error.name}; install it") from None
    kind = local.weights() if with_weights else ""
    of_files = sum(file.stat().st_size for file in local.files())
    require_memory(of_files, local.name, copies=_COPIES if with_weights else 1.0)
    model_class, config = _class_and_config(local, transformers)
    forms = _PLAINER if plainer else {}
    torch.manual_seed(SEED)
    try:
        if not kind:
            found = model_class._from_config(config, dtype=torch.float32, **forms)
            _give_start(found, local, transformers)
            return found.eval(), f"{local.name} has no weights: they were drawn from seed {SEED}"
        found, loading = model_class.from_pretrained(
            local.folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=kind == "safetensors",
            weights_only=True,
            output_loading_info=True,
            **forms,
        )
    except SourceError:
        raise
    except Exception as error:  # of transformers and of safetensors
        raise SourceError(f"transformers cannot load {local.name}: {described(error)}") from None
    missing = sorted(loading["missing_keys"])
    drawn = f"{local.name} lacks {', '.join(missing[:3])}{' and others' * (len(missing) > 3)}: drawn from seed {SEED}"
    return found.eval(), drawn if missing else ""


def _give_start(model: Any, local: LocalModel, transformers: Any) -> None:
    """Let it begin an answer as the folder says, which ``from_pretrained`` alone reads."""
    if local.folder is not None and any(file.name == _GENERATION for file in local.files()):
        model.generation_config = transformers.GenerationConfig.from_pretrained(local.folder, local_files_only=True)


def _class_and_config(local: LocalModel, transformers: Any) -> tuple[Any, Any]:
    raw = local.config()
    names = raw.get("architectures") or []
    own = raw.get("auto_map") or {}
    if own and not local.trust:
        raise SourceError(
            f"{local.name} contains Python code, which was not run; add --trust if you trust it",
            code="E_SOURCE_TRUST",
        )
    try:
        config = transformers.AutoConfig.from_pretrained(
            local.folder or local.config_file, local_files_only=True, trust_remote_code=local.trust
        )
    except Exception as error:  # of transformers, which also raises for a model type that it does not know
        raise SourceError(f"transformers cannot read the configuration of {local.name}: {described(error)}") from None
    for part in {id(part): part for part in (config, config.get_text_config())}.values():
        if hasattr(part, "use_cache"):
            part.use_cache = False  # a cache is for calls that follow, and there are none
    auto = local.auto_class(config)
    own_class = next((own[key] for key in (auto, *own) if key in own and key.startswith("AutoModel")), None)
    if own_class is not None:
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        return get_class_from_dynamic_module(own_class, local.folder, local_files_only=True), config
    if not names:
        return getattr(transformers, auto)._model_mapping[type(config)], config
    found = getattr(transformers, str(names[0]), None)
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise SourceError(f"{local.name}: transformers {transformers.__version__} has no model {names[0]}")
    return found, config


def example_inputs(module: Any, source: Source) -> tuple[dict[str, Any], dict[str, Fill]]:
    """Zeros of the right shapes and types, and what is drawn for each. The main input, and those that were named."""
    import torch

    accepted = list(inspect.signature(module.forward).parameters)
    main = str(module.main_input_name)
    given = inputs_of(source)
    shapes = {
        **_sizes_of_main(module, main, source, accepted),
        **dict(source.shapes),
        **shapes_of(given, accepted, source),
    }
    decoded = "decoder_input_ids"
    if module.config.is_encoder_decoder and decoded in accepted and decoded not in shapes and main in shapes:
        if main != "input_ids":
            raise SourceError(
                f"{type(module).__name__} also takes {decoded}; name its shape with the others: --shapes "
                f"{main}:{'x'.join(map(str, shapes[main]))},{decoded}:{shapes[main][0]}x16",
                code="E_MODEL_DIMENSIONS",
            )
        shapes[decoded] = shapes[main]  # both sides are sequences of tokens
    if source.mask in accepted and len(shapes.get(main, ())) == 2:
        shapes.setdefault(source.mask, shapes[main])
    for name in shapes:
        if name not in accepted:
            wrong = f"{type(module).__name__} takes no input {name!r}; it takes {', '.join(accepted)}"
            raise SourceError(with_hint(wrong, name, accepted), code="E_SHAPES")
    require_known_ranges(list(shapes), source)
    tensors, fills = {}, {}
    for name, shape in sorted(shapes.items(), key=lambda item: accepted.index(item[0])):
        dtype: Dtype = "int64" if name.endswith(("_ids", "mask", "labels")) else "float32"
        tensors[name] = torch.zeros(shape, dtype=getattr(torch, dtype))
        known = rows(rows_in(module.config, name)) if dtype == "int64" else None
        largest = int(given[0][name].max(initial=1)) if given and name in given[0] and dtype == "int64" else None
        fills[name] = fill_of(name, dtype, known, source, largest)
    return tensors, fills


def rows_in(config: Any, name: str) -> int | None:
    """How many values an input of integers may take; None where the configuration does not say."""
    if not name.endswith("_ids"):
        return None
    for part in (config.get_text_config(), config):
        rows = getattr(part, _BOUNDS.get(name, "vocab_size"), None)
        if isinstance(rows, int) and rows > 0:
            return rows
    return None


def _sizes_of_main(module: Any, main: str, source: Source, accepted: list[str]) -> Mapping[str, tuple[int, ...]]:
    """Of what people call by name: batch, sequence, height, width. None where its shape or its values are given."""
    if main in dict(source.shapes) or source.inputs:
        if source.dims and not source.among_others:
            raise SourceError("give the sizes by --dims or by --shapes and --inputs, not both", code="E_SHAPES")
        return {}
    dims = dict(source.dims)
    if unknown := [name for name in dims if name not in DIMS and not source.among_others]:
        wrong = f"no dimension is named {unknown[0]}; they are {', '.join(DIMS)}"
        raise SourceError(with_hint(wrong, unknown[0], DIMS), code="E_MODEL_DIMENSIONS")
    if source.batch is not None:
        dims["batch"] = source.batch
    image = getattr(module.config, "image_size", None)
    height, width = image if isinstance(image, list | tuple) else (image, image)
    parts = {
        "input_ids": (dims.get("batch"), dims.get("sequence")),
        "pixel_values": (
            dims.get("batch"),
            getattr(module.config, "num_channels", 3),
            dims.get("height", height),
            dims.get("width", width),
        ),
    }.get(main)
    if parts is None:
        raise SourceError(f"{main} has no sizes that are known; give them with --shapes {main}:8x...", code="E_SHAPES")
    sizes = tuple(size for size in parts if isinstance(size, int))
    if len(sizes) < len(parts):
        wanted = "batch=8,sequence=128" if main == "input_ids" else "batch=8,height=224,width=224"
        raise SourceError(
            f"some dimensions of {main} have no size; give them with --dims {wanted} or --shapes {main}:8x...",
            code="E_MODEL_DIMENSIONS",
        )
    return {main: sizes}
