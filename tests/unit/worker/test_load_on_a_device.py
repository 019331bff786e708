"""Requests that are answered on a GPU, against the fake driver: each is complete when the device is done with it."""

from __future__ import annotations

import numpy as np
from contestant_on_fakes import OneContestant
from cuda_on_fakes import on_fakes
from fairlap.models.array_files import safetensors
from fairlap.scenarios.load.load_messages import LoadTrial, OfferLoad
from fairlap.worker.service import served
from workers_of_fake import Files

REQUESTS = 40


def offered(contestant: OneContestant, workers: int) -> LoadTrial:
    request = OfferLoad(
        kind="capacity",
        requests=REQUESTS,
        bound_s=10.0,
        percentile=0.9,
        seed=1,
        path=str(contestant.folder / "requests.safetensors"),
        workers=workers,
        give_up_s=20.0,
    )
    trial, _ = served(contestant.service.held, request)
    assert isinstance(trial, LoadTrial)
    return trial


@on_fakes
def test_every_request_waits_for_the_device_whichever_thread_serves_it() -> None:
    for workers in (1, 2):
        contestant = OneContestant()
        contestant.answer()
        waits = contestant.machine.cuda.fake_cuda_call_count
        before = waits(b"cuCtxSynchronize")
        trial = offered(contestant, workers)
        assert (trial.requests, trial.unanswered, trial.without_answer) == (REQUESTS, 0, "")
        assert waits(b"cuCtxSynchronize") - before >= REQUESTS
        assert contestant.pending() == 0


@on_fakes
def test_the_answers_that_are_kept_are_those_of_the_requests() -> None:
    contestant = OneContestant()
    contestant.answer()
    trial = offered(contestant, workers=2)
    kept = safetensors.read(contestant.folder / "requests.safetensors")
    files = Files(contestant.folder)
    expected = files.x @ files.w
    assert trial.checked == len(kept) == 2
    for answer in kept.values():
        assert any(np.allclose(answer, sign * expected, rtol=1e-6) for sign in (1, -1))
