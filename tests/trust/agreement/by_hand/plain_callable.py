"""A callable of 20 microseconds, and the loop that times it as a user would."""

from timing import time_calls

NUMBERS = [(each * 7919) % 2000 for each in range(400)]


def call() -> None:
    sorted(NUMBERS)


if __name__ == "__main__":
    time_calls(call, seconds=0.5)  # in its only turn, after the race
