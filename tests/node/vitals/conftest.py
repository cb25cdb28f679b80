"""Drivers that the tests make: a library of NVIDIA's, compiled, and AMD's part of /sys."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two cards of AMD after one of somebody else; the ports of each have folders too."""
    root = tmp_path / "sys"
    for number, vendor in enumerate(("0x10de", "0x1002", "0x1002")):
        device = root / "class/drm" / f"card{number}" / "device"
        sensors = device / "hwmon" / f"hwmon{number}"
        sensors.mkdir(parents=True)
        (device / "ras").mkdir()
        reasons = 1 << 17 if number == 2 else 0
        metrics = bytearray(120)
        struct.pack_into("<HBB", metrics, 0, 120, 1, 3)
        struct.pack_into("<I", metrics, 68, reasons)
        for path, text in {
            device / "vendor": vendor,
            device / "gpu_busy_percent": str(40 + number),
            device / "mem_info_vram_used": str(10**9),
            device / "mem_info_vram_total": str(64 * 10**9),
            device / "pp_dpm_sclk": "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n",
            device / "ras" / "umc_err_count": "ue: 1\nce: 9\n",
            sensors / "power1_average": "230000000",
            sensors / "temp1_input": "71000",
        }.items():
            path.write_text(text + "\n")
        (device / "gpu_metrics").write_bytes(bytes(metrics))
        (root / "class/drm" / f"card{number}-HDMI-A-1").mkdir()
    return root
