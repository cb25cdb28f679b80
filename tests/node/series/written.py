"""Files as programs leave them: event files, logs of W&B, written byte by byte."""

import json
import struct


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    said = b""
    while number >= 0x80:
        said += bytes([number & 0x7F | 0x80])
        number >>= 7
    return said + bytes([number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def event(step: int, moment: float = 1.79e9, **values: float) -> bytes:
    """A record of scalars, each with the name of its argument."""
    told = b"".join(
        field(1, field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
        for name, value in values.items()
    )
    counted = b"\x10" + varint(step) if step else b""  # a step of 0 is left out
    return record(b"\x09" + struct.pack("<d", moment) + counted + field(5, told))


def wandb_record(step: int, values: dict, *, as_json: bool = True) -> bytes:
    items = b""
    for name, value in values.items():
        spelled = field(16, json.dumps(value).encode())
        if not as_json:
            spelled = b"\x31" + struct.pack("<d", value)
        items += field(1, field(1, name.encode()) + spelled)
    return field(2, items + field(2, b"\x08" + varint(step)))


def wandb_log(records: list[bytes]) -> bytes:
    """In blocks of 32 kB; a record that does not fit is cut into fragments."""
    said = bytearray(b":W&B\xe1\xbe\x00")
    for one in records:
        first = True
        while True:
            left = 32768 - len(said) % 32768
            if left < 7:
                said += b"\0" * left
                continue
            piece, one = one[: left - 7], one[left - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[
                (first, not one)
            ]
            said += struct.pack("<IHB", 0, len(piece), kind) + piece
            first = False
            if not one:
                break
    return bytes(said)
