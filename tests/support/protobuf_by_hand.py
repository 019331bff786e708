"""Messages of protobuf in bytes, written and read by hand: what tests compare generated classes with."""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def message(*fields: tuple[int, bytes | str | int]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def fields_in(data: bytes) -> list[tuple[int, bytes | int]]:
    found: list[tuple[int, bytes | int]] = []
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _read_varint(data, place)
            found.append((number, value))
            continue
        length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind, 0)
        if kind == _BYTES:
            length, place = _read_varint(data, place)
        found.append((number, data[place : place + length]))
        place += length
    return found


def all_of(data: bytes, number: int) -> list[bytes]:
    return [value for found, value in fields_in(data) if found == number and isinstance(value, bytes)]


def text_of(data: bytes, number: int) -> str:
    return "".join(value.decode() for value in all_of(data, number))


def varints_in(packed: Iterable[bytes]) -> list[int]:
    found = []
    for data in packed:
        place = 0
        while place < len(data):
            value, place = _read_varint(data, place)
            found.append(value)
    return found


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
