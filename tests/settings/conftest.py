"""A project folder with a rabaska.toml that uses every key."""

import pytest

WHOLE = """\
name = "digits"
command = "python train.py --data {data} --output {output} --resume {checkpoint}"
launch = "srun"
on = "beluga"
resume = "--resume"

[data.digits]
path = "data/digits"
at = ""
url = ""
sha256 = ""
fetch = ""
unpack = true
beside = []
as = "files"
follow_links = false
samples = false
images = "max 512"

[environment]
kind = "virtualenv"
path = ""
requirements = "requirements.txt"
extras = []
file = ""
image = ""
binds = []
build = "once"
python = "python3"
modules = ["python/3.11"]
variables = { OMP_NUM_THREADS = "4", MKL_NUM_THREADS = 4 }
secrets = ["HF_TOKEN"]
secrets_from = ".env"

[resources]
walltime = "3h"
gpus = 1
gpu_model = "v100"
cores = 4
memory = "16 GB"
nodes = 1
tasks = 4
exclusive = true

[chain]
jobs = 4
at_most = 12
grace = "60s"
signal = "TERM"
requeue = false

[checkpoints]
patterns = ["*.pt"]

[output]
keep = ["runs", "lightning_logs"]

[code]
exclude = ["notebooks"]
include = ["keys.pem"]

[progress]
watch = false
pattern = 'step (?P<step>\\d+)'

[notify]
mail = "ada@uni.example"
when = ["ends", "fails"]
stalled_after = "1h"
idle_after = "20m"

[search]
metric = "val_accuracy"
goal = "max"
trials = 20
at_once = 4
method = "random"
stopping = "asha"
first_report = 1
reduction = 3
take = "last"
seed = 0
trials_per_gpu = 1
keep_best = 20
keep_others = "all"
repeats = 0
repeat_best = 3
seed_option = "--seed"
values_as = "options"
file_option = "--config"
space = { lr = [0.1, 0.01] }

[cluster.beluga]
account = "def-prof"
queue = "gpu"
features = ["nvme"]
mail = "ana@example.org"
native = ["--exclusive"]
resources = { walltime = "12h" }

[cluster.beluga.chain]
jobs = 2

[cluster.beluga.environment]
kind = "current"

[cluster.beluga.data.digits]
at = "/project/digits"
as = "in place"
"""


@pytest.fixture
def folder(tmp_path):
    """A project folder whose requirements and data are there."""
    (tmp_path / "requirements.txt").write_text("numpy\n")
    (tmp_path / "data" / "digits").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def write(folder):
    """Write rabaska.toml and give back its folder."""

    def written(text):
        (folder / "rabaska.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return written


@pytest.fixture
def whole():
    return WHOLE
