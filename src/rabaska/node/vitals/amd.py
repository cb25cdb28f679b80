"""AMD's GPUs, as the kernel shows them below /sys/class/drm."""

import glob
import os
import re
import struct
from typing import List, Optional, Tuple

from .cgroups import content

SYSFS = "/sys"
_VENDOR = "0x1002"
_METRICS_WITH_REASONS = ((1, 1), (1, 2), (1, 3))  # of struct gpu_metrics: kgd_pp_interface.h
_REASONS_AT = 68  # bytes from its beginning, in these versions

Value = Tuple[str, str, float]


class AmdGpus:
    def __init__(self, sysfs: str = SYSFS, visible: Optional[str] = None) -> None:
        cards = glob.glob(os.path.join(glob.escape(sysfs), "class/drm/card[0-9]*/device"))
        own = [one for one in cards if re.search(r"/card\d+/device$", one)]
        own.sort(key=lambda one: int(re.findall(r"card(\d+)", one)[-1]))
        found = [one for one in own if content(os.path.join(one, "vendor")).strip() == _VENDOR]
        wanted = [one.strip() for one in (visible or "").split(",") if one.strip().isdigit()]
        self.folders = [
            one for place, one in enumerate(found) if not wanted or str(place) in wanted
        ]

    def values(self) -> List[Value]:
        told = []  # type: List[Value]
        for place, folder in enumerate(self.folders):
            told += [
                ("gpu{} {}".format(place, what), unit, value) for what, unit, value in _of(folder)
            ]
        return told


def _of(folder: str) -> List[Value]:
    sensors = (glob.glob(os.path.join(glob.escape(folder), "hwmon", "hwmon*")) or [""])[0]
    power = _number(os.path.join(sensors, "power1_average"))
    if power is None:
        power = _number(os.path.join(sensors, "power1_input"))
    now, top = _clocks(content(os.path.join(folder, "pp_dpm_sclk")))
    slowed = _slowed(os.path.join(folder, "gpu_metrics"))
    told = [
        ("use", "fraction", _scaled(_number(os.path.join(folder, "gpu_busy_percent")), 100)),
        ("memory", "bytes", _number(os.path.join(folder, "mem_info_vram_used"))),
        ("memory limit", "bytes", _number(os.path.join(folder, "mem_info_vram_total"))),
        ("power", "W", _scaled(power, 1e6)),
        ("temperature", "°C", _scaled(_number(os.path.join(sensors, "temp1_input")), 1000)),
        ("clock", "MHz", now),
        ("top clock", "MHz", top),
        ("throttled", "fraction", slowed),
        ("errors", "errors", _errors(folder)),
    ]
    return [(what, unit, value) for what, unit, value in told if value is not None]


def _number(path: str) -> Optional[float]:
    text = content(path).strip()
    return float(text) if re.match(r"-?\d+$", text) else None


def _scaled(value: Optional[float], by: float) -> Optional[float]:
    return None if value is None else value / by


def _clocks(text: str) -> Tuple[Optional[float], Optional[float]]:
    """Now and at most, in MHz: `1: 1502Mhz *`, a line for each."""
    found = re.findall(r"^\S+:\s*(\d+)\s*Mhz\s*(\*?)", text, re.MULTILINE | re.IGNORECASE)
    now = [float(clock) for clock, star in found if star]
    return (now[0] if now else None), max((float(clock) for clock, _ in found), default=None)


def _slowed(path: str) -> Optional[float]:
    """1 where the chip runs slower because it is too hot; None where it does not say."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(256)
    except OSError:
        return None
    if len(data) < _REASONS_AT + 4 or (data[2], data[3]) not in _METRICS_WITH_REASONS:
        return None
    reasons = struct.unpack_from("<I", data, _REASONS_AT)[0]
    return None if reasons == 0xFFFFFFFF else float(bool(reasons))


def _errors(folder: str) -> Optional[float]:
    """Errors that memory could not correct."""
    counts = [
        int(number)
        for path in glob.glob(os.path.join(glob.escape(folder), "ras", "*_err_count"))
        for number in re.findall(r"^ue:\s*(\d+)", content(path), re.MULTILINE)
    ]
    return float(sum(counts)) if counts else None
