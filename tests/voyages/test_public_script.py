"""A script in the style of public repositories, in a folder that has never seen rabaska."""

import random
import shutil
import struct
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.torch]


@pytest.fixture
def stranger(user):
    """Somebody with main.py, requirements.txt and class folders of small images."""
    pytest.importorskip("torch")
    shutil.rmtree(user.project)
    shutil.copytree(Path(__file__).parent / "public_script", user.project)
    (user.project / "requirements.txt").write_text("torch\n")
    noise = random.Random(1)
    for split, count in (("train", 60), ("val", 15)):
        for label in range(4):
            folder = user.project / "data" / split / f"class{label}"
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = [noise.gauss(float(at % 4 == label), 0.7) for at in range(64)]
                (folder / f"{number:04d}.bin").write_bytes(struct.pack("64f", *pixels))
    return user


def test_it_runs_as_a_chain_without_an_edit(stranger, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    script = (stranger.project / "main.py").read_bytes()

    stranger.types("init", "--yes")
    stranger.types("run", "--wait", "--walltime", "20s", "--jobs", "20")

    told = stranger.status()
    assert told["state"] == "finished"
    assert len(told["jobs"]) >= 3
    assert told["metrics"]["Acc"] > 0.9
    assert (stranger.project / "main.py").read_bytes() == script
