"""Models that are one graph train: their slopes by the chain rule are those of the loss itself, also by the batch."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.checks.losses import loss_of
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.models.training.reference import Batch, State, steps_of
from fairlap.models.workload import Workload
from fairlap.race.equal_work.material_sources import require_offered
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from workloads_of_models import workload_of

_STEP = 1e-7
SMALL = ("conformer:tiny", "ds_cnn", "gnn", "lstm_forecaster", "unet3d:tiny")
LARGE = ("clip", "dlrm", "llama:260k", "mobilenet_v1_025", "resnet8", "ssdlite", "t5:tiny", "tcn", "unet", "yolov8:n")


@pytest.mark.slow_but("lstm")
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_slopes_are_those_of_the_loss_along_a_direction(name: str) -> None:
    work = workload_of(name, mode="train")
    start = {key: array.astype(np.float64) for key, array in work.weights.items()}
    _, after = steps_of(work.spec, _forward(work), Training(Sgd(lr=1.0)), State(dict(start)), [_batch(work)])
    rng = np.random.default_rng(0)
    along = {
        weight.name: rng.choice([-1.0, 1.0], weight.shape) * np.abs(start[weight.name]).mean()
        for weight in work.spec.weights
        if weight.trained
    }
    slope = sum(float(((start[key] - after.weights[key]) * way).sum()) for key, way in along.items())
    ahead, behind = (_loss(work, {key: array + by * along.get(key, 0.0) for key, array in start.items()})
                     for by in (_STEP, -_STEP))  # fmt: skip
    assert slope == pytest.approx((ahead - behind) / (2 * _STEP), rel=2e-2, abs=1e-3)


def test_a_step_moves_the_averages_of_its_normalisations_and_those_alone_by_itself() -> None:
    work = workload_of("ds_cnn", mode="train")
    _, after = steps_of(work.spec, _forward(work), Training(Sgd(lr=0.0)), State(dict(work.weights)), [_batch(work)])
    moved = {name for name, array in after.weights.items() if not np.array_equal(array, work.weights[name])}
    assert moved == {weight.name for weight in work.spec.weights if not weight.trained}


def test_every_model_that_is_one_graph_trains_unless_it_only_infers() -> None:
    of_graphs = {
        "clip",
        "conformer:small",
        "gnn",
        "lstm_forecaster",
        "ssdlite",
        "t5:tiny",
        "tcn",
        "unet",
        "unet3d:small",
        "vit:tiny",
        "yolov8:s",
    }
    assert all("train" in find(name).spec.modes for name in of_graphs & set(workload_names()))
    assert find("ddim").spec.modes == ("infer",)


def test_steps_of_a_graph_are_asked_for_in_float32_alone() -> None:
    spec = find("gnn").spec
    for precision in ("bf16", "autocast"):
        with pytest.raises(InvalidRequest, match="trained in fp32"):
            require_offered(spec, Work("gnn", 1, "train", precision))
        require_offered(spec, Work("gnn", 1, "infer", precision))


def _forward(work: Workload) -> object:
    return work.implementation_of_reference().forward


def _batch(work: Workload) -> Batch:
    return Batch(work.inputs, work.labels)


def _loss(work: Workload, weights: dict[str, np.ndarray]) -> float:
    inputs = {key: array.astype(np.float64) if array.dtype.kind == "f" else array for key, array in work.inputs.items()}
    moving: tuple[dict[str, np.ndarray], ...] = ({},) if work.spec.has_statistics() else ()
    outputs = work.implementation_of_reference().forward(weights, inputs, *moving)
    return float(loss_of(work.spec.loss, outputs[work.spec.outputs[0].name], work.labels))
