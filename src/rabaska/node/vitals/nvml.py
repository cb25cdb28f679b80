"""NVIDIA's GPUs, through the library of their driver (NVML); nothing else is started.

A driver that is broken may never answer, so only the process `gpu-vitals` calls this.
"""

import ctypes
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p, sizeof
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

LIBRARY = "libnvidia-ml.so.1"
Value = Tuple[str, str, float]  # name, unit, value

# From nvml.h.
_XID = 0x8  # nvmlEventTypeXidCriticalError
_UNCORRECTED, _SINCE_BOOT = 1, 0
_SM_CLOCK = 1
_HEAT = 0x20 | 0x40  # software and hardware
_REASONS = (("heat", _HEAT), ("power cap", 0x4), ("power supply", 0x80), ("hardware", 0x8))
_SLOWED = _HEAT | 0x80 | 0x8  # a power cap is the ordinary state of a GPU at full load


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("device", c_void_p),
        ("type", c_ulonglong),
        ("data", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class Device(NamedTuple):
    name: str  # gpu0, as the job counts
    handle: Any
    slices: List[Tuple[str, Any]]  # of a GPU that is divided (MIG): name and handle of each


class NvidiaGpus:
    """Those of the job: all that the driver shows, or the ones that `visible` names."""

    def __init__(self, path: str = LIBRARY, visible: Optional[str] = None) -> None:
        self._library = ctypes.CDLL(path)
        self._call("nvmlInit_v2")
        self._events = c_void_p()
        self._listens = self._call("nvmlEventSetCreate", byref(self._events))
        self._xids: Dict[str, int] = {}
        self.devices = list(self._found(visible))
        if self._listens:
            for device in self.devices:
                self._call(
                    "nvmlDeviceRegisterEvents", device.handle, c_ulonglong(_XID), self._events
                )

    def _call(self, name: str, *given: Any) -> bool:
        """Whether the library has this function and it answered."""
        function = getattr(self._library, name, None)
        if function is None:
            return False
        function.restype = c_int
        return bool(function(*given) == 0)

    def _number(self, name: str, handle: Any, *given: Any, kind: Any = c_uint) -> Optional[float]:
        answer = kind()
        return float(answer.value) if self._call(name, handle, *given, byref(answer)) else None

    def _found(self, visible: Optional[str]) -> List[Device]:
        count = c_uint()
        self._call("nvmlDeviceGetCount_v2", byref(count))
        handles = []
        for index in range(count.value):
            handle = c_void_p()
            if self._call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle)):
                handles.append((index, handle))
        wanted = [one.strip() for one in (visible or "").split(",") if one.strip()]
        found: List[Device] = []
        for index, handle in handles:
            slices = self._slices(handle, wanted)
            if not wanted or self._is_wanted(index, handle, wanted) or slices:
                found.append(Device("gpu{}".format(len(found)), handle, slices))
        return found

    def _is_wanted(self, index: int, handle: Any, wanted: List[str]) -> bool:
        own = self._uuid(handle)
        return any(one == str(index) or (own and own.startswith(one)) for one in wanted)

    def _uuid(self, handle: Any) -> str:
        text = ctypes.create_string_buffer(96)
        found = self._call("nvmlDeviceGetUUID", handle, text, c_uint(sizeof(text)))
        return text.value.decode("ascii", "replace") if found else ""

    def _slices(self, handle: Any, wanted: List[str]) -> List[Tuple[str, Any]]:
        divided, pending = c_uint(), c_uint()
        if not self._call("nvmlDeviceGetMigMode", handle, byref(divided), byref(pending)):
            return []
        most = self._number("nvmlDeviceGetMaxMigDeviceCount", handle) if divided.value else 0
        named = [one for one in wanted if one.startswith("MIG-")]
        found: List[Tuple[str, Any]] = []
        for index in range(int(most or 0)):
            part = c_void_p()
            if not self._call(
                "nvmlDeviceGetMigDeviceHandleByIndex", handle, c_uint(index), byref(part)
            ):
                continue
            if not named or self._uuid(part) in named:
                found.append(("slice{}".format(len(found)), part))
        return found

    def values(self) -> List[Value]:
        self._hear_errors()
        return [value for device in self.devices for value in self._of(device)]

    def _of(self, device: Device) -> List[Value]:
        name, handle = device.name, device.handle
        told: List[Tuple[str, str, Optional[float]]] = []
        use = _Utilization()
        if self._call("nvmlDeviceGetUtilizationRates", handle, byref(use)):
            told.append(("use", "fraction", use.gpu / 100))
        told += self._memory("", handle)
        for part, own in device.slices:
            told += self._memory(part + " ", own)
        power = self._number("nvmlDeviceGetPowerUsage", handle)
        told.append(("power", "W", None if power is None else power / 1000))
        told.append(
            ("temperature", "°C", self._number("nvmlDeviceGetTemperature", handle, c_int(0)))
        )
        clock = c_int(_SM_CLOCK)
        told.append(("clock", "MHz", self._number("nvmlDeviceGetClockInfo", handle, clock)))
        told.append(("top clock", "MHz", self._number("nvmlDeviceGetMaxClockInfo", handle, clock)))
        told += self._slowed(handle)
        told.append(("errors", "errors", self._errors(name, handle)))
        return [
            ("{} {}".format(name, what), unit, value)
            for what, unit, value in told
            if value is not None
        ]

    def _memory(self, part: str, handle: Any) -> List[Tuple[str, str, Optional[float]]]:
        memory = _Memory()
        if not self._call("nvmlDeviceGetMemoryInfo", handle, byref(memory)):
            return []
        return [
            (part + "memory", "bytes", float(memory.used)),
            (part + "memory limit", "bytes", float(memory.total)),
        ]

    def _slowed(self, handle: Any) -> List[Tuple[str, str, Optional[float]]]:
        answer = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", handle, kind=c_ulonglong)
        if answer is None:
            return []
        reasons = int(answer)
        told: List[Tuple[str, str, Optional[float]]]
        told = [("throttled", "fraction", 1.0 if reasons & _SLOWED else 0.0)]
        return told + [
            ("throttled by " + word, "fraction", 1.0) for word, bits in _REASONS if reasons & bits
        ]

    def _errors(self, name: str, handle: Any) -> Optional[float]:
        """Bits that memory lost for good since the driver was loaded, and Xids of this job."""
        lost = self._number(
            "nvmlDeviceGetTotalEccErrors",
            handle,
            c_int(_UNCORRECTED),
            c_int(_SINCE_BOOT),
            kind=c_ulonglong,
        )
        if lost is None and not self._listens:
            return None
        return (lost or 0.0) + self._xids.get(name, 0)

    def _hear_errors(self) -> None:
        event = _Event()
        for _ in range(100):
            if not self._listens or not self._call(
                "nvmlEventSetWait_v2", self._events, byref(event), c_uint(0)
            ):
                return
            for device in self.devices:
                if device.handle.value == event.device:
                    self._xids[device.name] = self._xids.get(device.name, 0) + 1
