"""A neighbour that says that it is busy until it is ended; the rehearsal of a race has no device to keep busy."""

import time

print("busy", flush=True)
while True:
    time.sleep(1.0)
