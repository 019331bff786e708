"""Networks of one's own that are opened once for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from learning_sources import SUPPORT, OpenedHere, opened_here


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OpenedHere]]:
    for package in ("torch", "onnxscript"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.syspath_prepend(str(Path(SUPPORT)))
        names = ("convolutional", "transformer", "normalised")
        yield {name: opened_here(f"own_nets:{name}", "cross_entropy", tmp_path_factory.mktemp(name)) for name in names}
