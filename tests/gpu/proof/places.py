"""Where things lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / "build/gpu-proof"  # a file and a log for each part while they run
CACHE = ROOT / "build/gpu-proof-cache"  # weights, references and races; gigabytes
PAGES = ROOT / "docs/gpu-proof"  # what stays
