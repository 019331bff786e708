"""``hf:FOLDER`` and ``hf:config.json``: models of transformers, from local files only.

Raced as PyTorch modules are. Weights come from safetensors where the folder has them, else they are drawn by
transformers from a seed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlap.engine.measurement import Notice
from fairlap.models.sources.contract import Bundle, Learner, Opened, Route, SourceKind
from fairlap.models.sources.learning.loss import kind_of_loss, require_trusted_loss
from fairlap.models.sources.python_models.generating.generating_models import (
    implementation_of_generating,
    opened_generating,
    reference_of_generating,
    require_nothing_else,
)
from fairlap.models.sources.python_models.hugging_face_models import DIMS, LocalModel, example_inputs, module_of
from fairlap.models.sources.python_models.torch_models import implementation_of_module, opened_module
from fairlap.models.sources.python_models.torch_source import TorchSource
from fairlap.request.fields.source import PREFIX_OF_TRANSFORMERS, Source


class HuggingFace(SourceKind):
    title = "transformers"
    generates = True
    names_dimensions = True
    mask = "attention_mask"
    no_gradients = ""

    @classmethod
    def recognises(cls, text: str) -> bool:
        return text.startswith(PREFIX_OF_TRANSFORMERS)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return LocalModel(source).files()

    @classmethod
    def readable(cls, source: Source) -> tuple[Path, ...]:
        return LocalModel(source).readable()

    @classmethod
    def check(cls, source: Source) -> None:
        if source.generate:
            require_nothing_else(source)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        require_trusted_loss(source)
        if source.generate:
            return opened_generating(source, folder, lambda: module_of(LocalModel(source), with_weights=True))

        local = LocalModel(source)

        def plainer() -> TorchSource:
            return _of_module(module_of(local, with_weights=True, plainer=True)[0], source)

        module, drawn = module_of(local, with_weights=True)
        found = opened_module(replace(_of_module(module, source), plainer=plainer), source, folder)
        found = replace(found, dims=tuple(name for name, _ in source.dims if name in DIMS))
        if drawn:
            found = replace(found, notices=(*found.notices, Notice("W_WEIGHTS_DRAWN", drawn)))
        return found

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        """Make the implementation, whose weights are those that were read or drawn when the model was opened."""

        def empty() -> Any:
            return module_of(LocalModel(bundle.source), with_weights=False)[0]

        if bundle.source.generate:
            return implementation_of_generating(bundle, folder, framework, empty)

        return implementation_of_module(folder, framework, lambda: _of_module(empty(), bundle.source), bundle.source)

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        """Train what the loss depends on; a folder cannot freeze the rest, such as a pooler.

        Of a model that answers token by token, there are outputs alone.
        """
        if source.generate:
            return reference_of_generating(source, lambda: module_of(LocalModel(source), with_weights=False)[0])
        from fairlap.models.sources.learning.torch_learner import learner_of_module

        require_trusted_loss(source)
        module, _ = module_of(LocalModel(source), with_weights=False)
        learner = learner_of_module(_of_module(module, source), source, kind_of_loss(source.loss))
        return replace(learner, unused_are_constants=True)


def _of_module(module: Any, source: Source) -> TorchSource:
    tensors, fills = example_inputs(module, source)
    return TorchSource(module, tensors, Route("native"), fills=fills)


KIND = HuggingFace
