"""Projects with one fault each, by the finding that must tell it."""

from small_projects import REQUIREMENTS, TRAIN, WITHOUT_CUDA, Small

CRLF = b"#!/bin/bash\r\n#SBATCH --time=1:00:00\r\npython train.py\r\n"
SALLOC = "#!/bin/bash\n#SBATCH --gres=gpu:1\nsalloc --time=1:00:00\npython train.py\n"
ONLY_PRINTS = "import torch\nfor epoch in range(9):\n    print(torch.rand(1))\n"
PLOTS = REQUIREMENTS + "matplotlib\n"
COPIES = {f"images/c/{n}.jpg": "the same picture " * 100 for n in range(20)}

BY_DEFAULT = TRAIN.format(step="pass", epoch="pass", end="pass", top="").replace(
    '"--data", required=True', '"--data", default="./images"'
)

FAULTS = {
    # ---- code
    "misspelt-script": ("code.script", Small(command="python trian.py --data {data}")),
    "misspelt-script-of-a-launcher": (
        "code.script",
        Small(command="torchrun --standalone --nproc_per_node 1 trian.py --data {data}"),
    ),
    "misspelt-script-of-a-module": (
        "code.script",
        Small(command="python -m torch.distributed.run --nproc-per-node=1 trian.py {data}"),
    ),
    "misspelt-shell-script": (
        "code.script",
        Small(command="bash -e job.hs.sh {data}", files={"job.sh": "python train.py"}),
    ),
    "misspelt-script-by-its-path": (
        "code.script",
        Small(command="./jbo.sh {data}", files={"job.sh": "python train.py"}),
    ),
    "misspelt-module": (
        "code.script",
        Small(command="python -um tools.fti {data}",
              files={"tools/__init__.py": "", "tools/fit.py": "print(1)"}),
    ),
    "misspelt-behind-a-wrapper": (
        "code.script",
        Small(command="env OMP_NUM_THREADS=1 python -W ignore -u trian.py --data {data}"),
    ),
    "script-in-another-folder": (
        "code.script",
        Small(command="python src/train.py --data {data}"),
    ),
    "script-that-is-left-out": (
        "code.script",
        Small(more='[code]\nexclude = ["train.py"]'),
    ),
    "plot": ("code.window", Small(end="import matplotlib.pyplot as plt; plt.show()",
                                  requirements=PLOTS)),
    "plot-each-epoch": ("code.window", Small(epoch="plt.show()", top="import pylab as plt",
                                             requirements=PLOTS)),
    "window": ("code.window", Small(epoch="cv2.imshow('x', 1)")),
    "backend": ("code.backend", Small(end="import matplotlib; matplotlib.use('TkAgg')",
                                      requirements=PLOTS)),
    "question": ("code.asks", Small(top="name = input('Name of the run? ')")),
    "debugger": ("code.asks", Small(step="breakpoint()")),
    "path-linux": ("code.path", Small(top="ROOT = '/home/ana/data/imagenet'")),
    "path-mac": ("code.path", Small(top="open('/Users/ana/labels.csv')")),
    "path-windows": ("code.path", Small(top=r"ROOT = 'C:\\data\\train'")),
    "path-colab": ("code.path", Small(top="ROOT = '/content/drive/MyDrive/data'")),
    "saves-each-step": ("code.saves-often", Small(step="torch.save(model, 'last.pt')")),
    "writes-each-step": ("code.writes-often", Small(step="open('log.txt', 'a').write('x')")),
    "pictures-each-step": ("code.writes-often", Small(step="cv2.imwrite('x.png', images)")),
    "workers": ("code.workers", Small(resources="gpus = 1\ncores = 2")),
    "workers-without-cores": ("code.workers", Small(resources="gpus = 1")),
    "workers-of-the-node": (
        "code.workers",
        Small(top="DataLoader([], num_workers=os.cpu_count())"),
    ),
    "bf16": (
        "code.bf16",
        Small(on="sdumont", step="x = images.to(torch.bfloat16)", cluster='queue = "gdl"',
              resources="gpus = 1\ncores = 4"),
    ),
    "bf16-trainer": (
        "code.bf16",
        Small(on="mila", epoch="Trainer(precision='bf16-mixed')", cluster="",
              resources='gpus = 1\ngpu_model = "v100"\ncores = 4'),
    ),
    "never-saves": ("code.never-saves", Small(train=ONLY_PRINTS, requirements="torch\n")),
    "never-resumes": (
        "code.never-resumes",
        Small(train="import torch\nfor n in range(9):\n    torch.save(n, 'output/x.pt')\n",
              command="python train.py {data}", requirements="torch\n"),
    ),
    "idle-gpus": ("code.idle-gpus", Small(resources="gpus = 4\ncores = 4")),
    "line-ends": ("code.line-ends", Small(files={"job.sh": CRLF})),
    "byte-order-mark": (
        "code.line-ends",
        Small(files={"run.sh": b"\xef\xbb\xbf#!/bin/bash\npython train.py\n"}),
    ),
    "salloc-in-script": ("code.salloc", Small(files={"atelier.sh": SALLOC})),
    "longer-than-purge": ("cluster.purge-soon", Small(walltime="7d", jobs=5)),
    # ---- downloads where nodes have no internet
    "downloads-data": (
        "code.download",
        Small(top="datasets.CIFAR10('data', download=True)"),
    ),
    "downloads-weights": (
        "code.download",
        Small(top="import torchvision\ntorchvision.models.resnet50(pretrained=True)"),
    ),
    "downloads-new-weights": (
        "code.download",
        Small(top="from torchvision.models import resnet18, ResNet18_Weights\n"
              "resnet18(weights=ResNet18_Weights.DEFAULT)"),
    ),
    "downloads-model": (
        "code.download",
        Small(top="from transformers import AutoModel\n"
              "AutoModel.from_pretrained('bert-base-uncased')",
              requirements=REQUIREMENTS + "transformers\n"),
    ),
    "downloads-hub": ("code.download", Small(top="torch.hub.load('pytorch/vision', 'alexnet')")),
    "downloads-file": (
        "code.download",
        Small(top="import urllib.request\nurllib.request.urlretrieve('http://x.org/y', 'y')"),
    ),
    "tracker": (
        "code.tracker",
        Small(on="sdumont", top="import comet_ml\ncomet_ml.Experiment(project_name='x')",
              requirements="torch==2.5.1\ntorchvision\ncomet_ml\n", cluster='queue = "gdl"'),
    ),
    # ---- data
    "empty-data": ("data.empty", Small(data='[data.more]\npath = "more"', files={"more/": ""})),
    "archive": ("data.archive", Small(files={"images/all.zip": b"x" * 100_000})),
    "hollow": ("data.hollow", Small(files={"images/a/cut-short.jpg": ""})),
    "copies": ("data.twice", Small(files=COPIES)),
    "data-by-its-path": (
        "code.data",
        Small(command="python train.py --data images --output {output} --resume {checkpoint}"),
    ),
    "data-by-a-path-inside": (
        "code.data",
        Small(command="python train.py --data=./images/a --output {output} --resume {checkpoint}"),
    ),
    "data-by-default": (
        "code.data",
        Small(train=BY_DEFAULT,
              command="python train.py --output {output} --resume {checkpoint}"),
    ),
    "copy-of-data-there": (
        "data.copy",
        Small(data='[data.rings]\nat = "/scratch/rings"',
              command="python train.py --data {data.images} --output {output} "
              "--resume {checkpoint}",
              files={"data/rings/1.npy": "x", "data/rings/2.npy": "x"}),
    ),
    "copy-of-data-there-beside-others": (
        "data.copy",
        Small(data='[data.rings]\nat = "/scratch/old/Circles"\n[code]\nexclude = ["notes"]',
              command="python train.py --data {data.images} --output {output} "
              "--resume {checkpoint}",
              files={"circles/1.npy": "x", "notes/1.md": "x"}),
    ),
    "loose-data-inside": (
        "data.loose",
        Small(files={f"more/faces/{n}.png": "x" for n in range(150)}),
    ),
    "loose-data": ("data.loose", Small(files={f"faces/{n}.png": "x" for n in range(150)})),
    # ---- environment
    "unused-requirements": (
        "environment.unused",
        Small(cluster='account = "def-prof"\nenvironment = {kind = "current"}'),
    ),
    "conda": (
        "environment.conda",
        Small(environment="", files={"environment.yml": "dependencies: [python]\n",
                                     "requirements.txt": None}),
    ),
    "package-of-one-computer": (
        "environment.local",
        Small(requirements=REQUIREMENTS + "numpy @ file:///croot/numpy_1707830/work\n"),
    ),
    "missing-package": ("environment.missing", Small(top="import cv2")),
    "torch-on-k40": (
        "environment.build",
        Small(on="sdumont", cluster='queue = "nvidia"', requirements="torch==1.13.1\ntorchvision"),
    ),
    "torch-on-p100": (
        "environment.build",
        Small(on="minsky", cluster="", requirements="torch==2.9.0\ntorchvision\n"),
    ),
    "torch-13-on-v100": (
        "environment.build",
        Small(on="mila", cluster="", requirements="torch==2.12.0\ntorchvision\n",
              resources='gpus = 1\ngpu_model = "v100"\ncores = 4'),
    ),
    "old-torch-on-h100": (
        "environment.build",
        Small(on="rorqual", requirements="torch==1.13.1\ntorchvision\n"),
    ),
    "tensorflow-on-k80": (
        "environment.build",
        Small(on="copper", cluster="", requirements="tensorflow==2.18.0\ntorch\ntorchvision\n",
              walltime="3h"),
    ),
    "newest-torch-on-v100": (
        "environment.build",
        Small(on="mila", cluster="", requirements="torch\ntorchvision\n",
              resources='gpus = 1\ngpu_model = "v100"\ncores = 4'),
    ),
    "cuda-without-gpu": ("environment.cuda", Small(on="mila", cluster="", resources="cores = 4")),
    "old-python": (
        "environment.python",
        Small(environment='requirements = "requirements.txt"\npython = "python3.6"'),
    ),
    "cuda-without-a-gpu": (
        "code.needs-gpu",
        Small(on="mila", cluster="", resources="cores = 4", epoch="model.cuda()",
              requirements=WITHOUT_CUDA),
    ),
    # ---- cluster
    "misspelt-table": (
        "cluster.table",
        Small(on="mila", cluster="", requirements="torch\ntorchvision\n",
              environment='requirements = "requirements.txt"\n[cluster.mlia]\nmail = "a@b.org"'),
    ),
    "gone": ("cluster.gone", Small(on="beluga")),
    "no-account": ("cluster.account", Small(cluster="")),
    "wrong-account": ("cluster.account", Small(on="tamia", resources="gpus = 4\ncores = 4",
                                               more='launch = "torchrun"')),
    "unknown-queue": ("cluster.queue", Small(on="sdumont", cluster='queue = "nvidea"')),
    "queue-where-none": ("cluster.queue", Small(cluster='account = "def-prof"\nqueue = "gpu"')),
    "unknown-model": (
        "cluster.model",
        Small(resources='gpus = 1\ngpu_model = "v100"\ncores = 4'),
    ),
    "too-long": ("cluster.time", Small(walltime="10d")),
    "too-short": ("cluster.short", Small(walltime="2m")),
    "no-gpu-in-gpu-queue": (
        "cluster.no-gpu",
        Small(on="sdumont2nd", cluster='queue = "lncc-h100_shared"', resources="cores = 4",
              requirements=WITHOUT_CUDA),
    ),
    "too-many-gpus": (
        "cluster.gpus",
        Small(more='launch = "torchrun"', resources="gpus = 8\ntasks = 1\ncores = 4"),
    ),
    "number-of-gpus": (
        "cluster.gpu-count",
        Small(on="trillium-gpu", more='launch = "torchrun"',
              resources="gpus = 2\ntasks = 1\ncores = 4"),
    ),
    "too-many-cores": ("cluster.cores", Small(resources="gpus = 1\ncores = 96")),
    "too-much-memory": (
        "cluster.memory",
        Small(resources='gpus = 1\ncores = 4\nmemory = "2 TB"'),
    ),
    "too-many-nodes": (
        "cluster.nodes",
        Small(on="trillium-gpu", more='launch = "torchrun"',
              resources="gpus = 4\nnodes = 9\ntasks = 1\ncores = 4"),
    ),
    "above-the-bundle": (
        "cluster.bundle",
        Small(resources='gpus = 1\ncores = 4\nmemory = "300 GB"'),
    ),
    "part-of-a-whole-node": (
        "cluster.exclusive",
        Small(on="perlmutter", cluster='account = "m1234_g"'),
    ),
    "too-many-jobs": (
        "cluster.many",
        Small(on="sdumont2nd", cluster='queue = "lncc-h100_shared"', jobs=100),
    ),
}  # fmt: skip
