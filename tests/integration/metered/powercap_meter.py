"""Stands in for a processor's energy counters: ``powercap_meter.py ROOT BUSY``.

Below ROOT the counters of a package, of what lies in it, of its memory, and of the same package reported again grow
as the real ones do. The package draws 40 W, and 100 W once the file BUSY is there; its memory 8 W.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

IDLE_W, BUSY_W, MEMORY_W = 40.0, 100.0, 8.0
ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl-mmio:0": "package-0",
}


def main(root: Path, busy: Path) -> None:
    counters = {}
    for zone, name in ZONES.items():
        folder = root / "sys/class/powercap" / zone
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text("262143328850\n")
        counters[zone] = os.open(folder / "energy_uj", os.O_RDWR | os.O_CREAT)
    joules = dict.fromkeys(ZONES, 0.0)
    before_s = time.monotonic()
    parent = os.getppid()
    reported, late_s = False, 0.0
    while os.getppid() == parent:
        package_w = BUSY_W if busy.exists() else IDLE_W
        now_s = time.monotonic()
        for zone, name in ZONES.items():
            joules[zone] += (MEMORY_W if name == "dram" else package_w) * (now_s - before_s)
            os.pwrite(counters[zone], f"{round(joules[zone] * 1e6):015d}\n".encode(), 0)  # never shorter than before
        before_s = now_s
        if time.monotonic() - now_s > late_s:  # held up between looking at the time and telling what was drawn by then
            late_s = time.monotonic() - now_s
            (root / "late_s").write_text(f"{late_s}")
        if not reported:
            print("ready", flush=True)
            reported = True
        time.sleep(0.002)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
