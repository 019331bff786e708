"""Training to a score as ``:::MLLOG`` lines, for tools that read the logs of MLPerf Training. Needs mlperf-logging.

Lines are grouped by process, each in its own namespace such as ``torch/0``: the contestant and the block. Times are
those of the steps: every log begins when the run began, and its clock stands still while batches are bound and weights
are evaluated, unless evaluation counts. So differences count, and the clock is not that of the wall.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.race.run import Run
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.results.results import Results
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult

_MS_PER_S = 1e3
_DIGITS = 3  # of a millisecond

Event = tuple[str, Any, float, dict[str, Any]]
"""A key of the format with its value, seconds that count, and what else is known."""


def encode(results: Results) -> bytes:
    run = results.run
    logs = [(process, process.learning) for process in run.processes if process.learning is not None]
    if not logs:
        raise InvalidRequest(
            "no process of this run trained to a score, and a .mllog file logs nothing else; race with --to-score",
            code="E_OUTPUT_FORMAT",
        )
    text = io.StringIO()
    logger, keys = _logger(text)
    kinds = {"start": logger.start, "stop": logger.end}
    began_ms = datetime.fromisoformat(run.began_at).timestamp() * _MS_PER_S if run.began_at else 0.0
    for process, curve in logs:
        for key, value, seconds, metadata in (*_settings(run, process, keys), *_training(process, curve, keys)):
            write = kinds.get(key.rpartition("_")[2], logger.event)
            write(
                key,
                value,
                metadata=metadata,
                namespace=f"{process.contestant}/{process.block}",
                time_ms=round(began_ms + seconds * _MS_PER_S, _DIGITS),
            )
    return text.getvalue().encode()


def _logger(text: io.StringIO) -> tuple[Any, Any]:
    try:
        from mlperf_logging.mllog import constants
        from mlperf_logging.mllog.mllog import MLLogger
    except ImportError:
        raise NotAvailable("logs of MLPerf need mlperf-logging: pip install 'fairlap[mlperf]'") from None
    lines = logging.Logger("fairlap.mllog")
    lines.addHandler(logging.StreamHandler(text))
    return MLLogger(lines, root_dir=re.escape(str(Path(__file__).parents[3]))), constants


def _settings(run: Run, process: ProcessResult, keys: Any) -> Iterator[Event]:
    work = run.plan.work_with(process.work_id)
    named = {
        "contestant": process.contestant,
        "version": process.version,
        "mode": work.mode,
        "precision": work.precision,
        "fairlap": run.fairlap,
    }
    yield keys.SUBMISSION_BENCHMARK, work.model, 0.0, named
    yield keys.SEED, run.plan.seed, 0.0, {"data_seed": process.data_seed, "block": process.block}
    yield keys.GLOBAL_BATCH_SIZE, work.batch, 0.0, {}
    yield keys.GRADIENT_ACCUMULATION_STEPS, 1, 0.0, {}
    for key, value, metadata in _optimizer(work, keys):
        yield key, value, 0.0, metadata


def _optimizer(work: Work, keys: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    training = work.training
    assert isinstance(training, Training)
    optimizer, schedule = training.optimizer, training.schedule
    if isinstance(optimizer, Sgd):
        yield keys.OPT_NAME, keys.SGD, {"momentum": optimizer.momentum}  # the format has no key for it
        yield keys.OPT_WEIGHT_DECAY, optimizer.decay, {}
    else:
        yield keys.OPT_NAME, keys.ADAMW, {}
        yield keys.OPT_ADAMW_BETA_1, optimizer.beta1, {}
        yield keys.OPT_ADAMW_BETA_2, optimizer.beta2, {}
        yield keys.OPT_ADAMW_EPSILON, optimizer.epsilon, {}
        yield keys.OPT_ADAMW_WEIGHT_DECAY, optimizer.decay, {}
    yield keys.OPT_BASE_LR, optimizer.lr, {}
    yield keys.OPT_LR_WARMUP_STEPS, schedule.warmup, {}
    if schedule.kind != "constant":
        yield keys.OPT_LR_DECAY_SCHEDULE, schedule.kind, {}
        yield keys.OPT_LR_TRAINING_STEPS, schedule.steps, {}
        yield keys.OPT_END_LR, optimizer.lr * schedule.floor, {}


def _training(process: ProcessResult, curve: LearningCurve, keys: Any) -> Iterator[Event]:
    yield keys.RUN_START, None, 0.0, {}
    before_s = answered_s = 0.0
    for number, each in enumerate(curve.evaluations, start=1):
        epoch = {keys.EPOCH_NUM: number}
        stepped_s = each.trained_s - (each.answered_s - answered_s)
        evaluates = each.answered_s > answered_s
        yield keys.EPOCH_START, None, before_s, epoch
        yield keys.EPOCH_STOP, None, stepped_s, {**epoch, keys.STEP_NUM: each.steps}
        if evaluates:
            yield keys.EVAL_START, None, stepped_s, epoch
        if each.score is not None:
            yield keys.EVAL_ACCURACY, each.score, each.trained_s, {**epoch, "loss": each.loss, "target": curve.target}
        if evaluates:
            yield keys.EVAL_STOP, None, each.trained_s, epoch
        before_s, answered_s = each.trained_s, each.answered_s
    reached = process.finished and curve.reached is not None
    status = keys.SUCCESS if reached else keys.ABORTED
    yield keys.RUN_STOP, None, before_s, {keys.STATUS: status, "outcome": process.outcome}
