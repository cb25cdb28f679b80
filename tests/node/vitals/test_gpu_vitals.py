"""GPUs, asked through their drivers: all their numbers, of the job's own, and never waited for."""

import os
import time
from pathlib import Path

import pytest

from rabaska.node.vitals import gpu_process
from rabaska.node.vitals.amd import AmdGpus
from rabaska.node.vitals.gpu_process import GpuProcess
from rabaska.node.vitals.nvml import NvidiaGpus


def told(gpus: NvidiaGpus | AmdGpus) -> dict[str, float]:
    return {name: value for name, _, value in gpus.values()}


def test_a_gpu_of_nvidia_tells_all_its_numbers_with_their_units(fake_nvml):
    values = {name: (unit, value) for name, unit, value in NvidiaGpus(str(fake_nvml)).values()}

    assert {name: value for name, value in values.items() if name.startswith("gpu0 ")} == {
        "gpu0 use": ("fraction", 0.87),
        "gpu0 memory": ("bytes", 12.0 * 2**30),
        "gpu0 memory limit": ("bytes", 40.0 * 2**30),
        "gpu0 power": ("W", 250.0),
        "gpu0 temperature": ("°C", 61.0),
        "gpu0 clock": ("MHz", 1410.0),
        "gpu0 top clock": ("MHz", 1410.0),
        "gpu0 throttled": ("fraction", 0.0),
        "gpu0 errors": ("errors", 2.0),
    }


@pytest.mark.parametrize(
    ("reasons", "throttled", "named"),
    [
        (0x1, 0.0, []),
        (0x4, 0.0, ["power cap"]),
        (0x40, 1.0, ["heat"]),
        (0x20 | 0x4, 1.0, ["heat", "power cap"]),
        (0x80, 1.0, ["power supply"]),
        (0x8, 1.0, ["hardware"]),
    ],
)
def test_the_reasons_of_throttling_are_named(
    fake_nvml, tmp_path, monkeypatch, reasons, throttled, named
):
    (tmp_path / "gpus").write_text(f"99 300000 88 900 {reasons}\n")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus"))

    found = told(NvidiaGpus(str(fake_nvml)))

    assert found["gpu0 throttled"] == throttled
    by = "gpu0 throttled by "
    assert sorted(name[len(by) :] for name in found if name.startswith(by)) == named


@pytest.mark.parametrize("visible", ["1", "GPU-1111", "GPU-11"])
def test_only_the_gpus_of_the_job_are_told(fake_nvml, visible):
    gpus = NvidiaGpus(str(fake_nvml), visible)

    assert {name.split()[0] for name in told(gpus)} == {"gpu0"}
    assert gpus.devices[0].handle.value == NvidiaGpus(str(fake_nvml)).devices[1].handle.value


def test_of_a_divided_gpu_the_memory_of_each_slice_is_told(fake_nvml, monkeypatch):
    monkeypatch.setenv("FAKE_MIG", "1")

    found = told(NvidiaGpus(str(fake_nvml)))
    own = told(NvidiaGpus(str(fake_nvml), "MIG-1"))

    assert "gpu1 use" not in found
    assert found["gpu1 slice0 memory"] == found["gpu1 slice1 memory"] == 3 * 2**30
    assert [name for name in own if "slice" in name] == [
        "gpu0 slice0 memory", "gpu0 slice0 memory limit",
    ]  # fmt: skip


def test_a_gpu_of_amd_tells_what_the_kernel_shows(sysfs):
    found = told(AmdGpus(str(sysfs)))

    assert {name: value for name, value in found.items() if name.startswith("gpu0 ")} == {
        "gpu0 use": 0.41,
        "gpu0 memory": 1e9,
        "gpu0 memory limit": 64e9,
        "gpu0 power": 230.0,
        "gpu0 temperature": 71.0,
        "gpu0 clock": 800.0,
        "gpu0 top clock": 1700.0,
        "gpu0 throttled": 0.0,
        "gpu0 errors": 1.0,
    }
    assert found["gpu1 throttled"] == 1.0
    assert {name.split()[0] for name in told(AmdGpus(str(sysfs), "1"))} == {"gpu0"}


def test_a_sysfs_without_amd_tells_nothing(tmp_path):
    assert told(AmdGpus(str(tmp_path))) == {}


@pytest.fixture
def asked(fake_nvml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(gpu_process.LIBRARY, str(fake_nvml))
    monkeypatch.setenv(gpu_process.SYSFS, str(tmp_path))
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus"))
    monkeypatch.setenv("SECRET_TAG", "x")
    process = GpuProcess("SECRET_TAG")
    yield process
    process.end()


def test_a_process_of_its_own_asks_the_driver(asked, tmp_path):
    first = asked.values()
    (tmp_path / "gpus").write_text("12 60000 40 300 0\n")
    then = {name: value for name, _, value in asked.values()}

    assert ("gpu0 use", "fraction", 0.87) in first
    assert then["gpu0 use"] == 0.12
    assert 0 < asked.spent < 1
    assert b"SECRET_TAG" not in Path(f"/proc/{asked.stuck}/environ").read_bytes()


def test_an_xid_counts_as_an_error_of_its_gpu_once(asked):
    for _ in range(2):
        assert {name: value for name, _, value in asked.values()}["gpu1 errors"] == 1.0


def test_a_driver_that_hangs_is_given_up_and_not_waited_for(asked, tmp_path, monkeypatch):
    assert asked.values()
    monkeypatch.setattr(asked, "_patience", 0.3)
    (tmp_path / "gpus").write_text("hang\n")
    began = time.monotonic()

    assert asked.values() == []
    assert asked.why == "the driver did not answer in 0 s"
    assert asked.values() == []
    assert time.monotonic() - began < 3
    assert asked.stuck is None


def test_a_driver_that_hangs_does_not_delay_the_end_of_a_job(asked, tmp_path):
    (tmp_path / "gpus").write_text("hang\n")
    began = time.monotonic()

    assert asked.values(is_over=lambda: time.monotonic() - began > 0.2) == []
    asked.end()

    assert time.monotonic() - began < 3
    assert asked.why == ""


def test_a_driver_that_crashes_is_given_up(asked):
    assert asked.values()
    os.kill(asked.stuck, 9)

    assert asked.values() == []
    assert asked.why == "the process that asks the driver ended"


def test_a_library_that_is_none_gives_no_gpus(tmp_path, monkeypatch):
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_bytes(b"no library")
    monkeypatch.setenv(gpu_process.LIBRARY, str(broken))
    monkeypatch.setenv(gpu_process.SYSFS, str(tmp_path))
    process = GpuProcess()

    assert process.values() == []
    assert process.why == ""
    process.end()
