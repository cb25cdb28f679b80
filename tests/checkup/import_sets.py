"""Lists of packages and the imports of programs, as people write them; none lacks anything.

Each set has a list, a program, and the lines of the list whose removal must be found.
"""

# ruff: noqa: E501 - lines as people write them

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ImportSet:
    requirements: str
    program: str
    needed: tuple[str, ...]  # packages without which the program stops at once
    files: dict[str, str] = field(default_factory=dict)


SETS = {
    "plain images": ImportSet(
        "torch==2.5.1\ntorchvision==0.20.1\ntqdm\n",
        "import torch\nimport torchvision.models as models\nfrom tqdm import tqdm\n"
        "import numpy as np\nfrom PIL import Image\n",  # both come with torchvision
        ("tqdm", "torchvision"),
    ),
    "segmentation": ImportSet(
        "matplotlib\nnumpy\nPillow\ntorch>=1.13.1\ntqdm\nwandb\n",
        "import argparse, logging, os, sys\nfrom pathlib import Path\nimport numpy as np\n"
        "import torch\nimport torch.nn.functional as F\nimport wandb\nfrom PIL import Image\n"
        "from tqdm import tqdm\nimport matplotlib.pyplot as plt\nfrom unet import UNet\n"
        "from utils.data_loading import BasicDataset\n",
        ("wandb", "tqdm", "matplotlib", "torch"),
        {"unet/__init__.py": "", "utils/data_loading.py": "import torch\nfrom PIL import Image\n"},
    ),
    "language model": ImportSet(
        "torch\ntransformers>=4.30\ndatasets\ntiktoken\nwandb\ntqdm\n",
        "import os, math, pickle\nfrom contextlib import nullcontext\nimport numpy as np\n"
        "import torch\nimport tiktoken\nfrom datasets import load_dataset\nfrom tqdm import tqdm\n"
        "from model import GPT\n",
        ("tiktoken", "datasets", "torch"),
        {"model.py": "import torch.nn as nn\nfrom transformers import GPT2LMHeadModel\n"},
    ),
    "detector": ImportSet(
        "numpy>=1.18.5\nopencv-python>=4.1.2\nPillow\nPyYAML>=5.3.1\nrequests>=2.23.0\n"
        "scipy>=1.4.1\ntorch>=1.7.0\ntorchvision>=0.8.1\ntqdm>=4.41.0\ntensorboard>=2.4.1\n"
        "pandas>=1.1.4\nseaborn>=0.11.0\npsutil\nthop\n",
        "import cv2\nimport numpy as np\nimport pandas as pd\nimport requests\nimport seaborn as sn\n"
        "import torch\nimport yaml\nfrom PIL import Image\nfrom scipy.ndimage import gaussian_filter1d\n"
        "from torch.utils.tensorboard import SummaryWriter\nfrom tqdm import tqdm\nimport thop\n"
        "import psutil\n",
        ("opencv-python", "PyYAML", "requests", "tensorboard", "seaborn", "thop", "psutil", "tqdm"),
    ),
    "lightning and hydra": ImportSet(
        "torch>=2.0.0\ntorchvision\nlightning>=2.0.0\ntorchmetrics\nhydra-core==1.3.2\n"
        "hydra-colorlog==1.2.0\nhydra-optuna-sweeper==1.2.0\nrootutils\nrich\npytest\n",
        "from typing import Any, Dict\nimport hydra\nimport lightning as L\nimport rootutils\n"
        "import torch\nfrom lightning import Callback\nfrom lightning.pytorch.loggers import Logger\n"
        "from omegaconf import DictConfig\nfrom torchmetrics import MeanMetric\nimport rich\n"
        "rootutils.setup_root(__file__, indicator='x', pythonpath=True)\n"
        "from src.utils import extras\n",
        ("rootutils", "lightning"),
        {"src/utils/__init__.py": "", "src/__init__.py": ""},
    ),
    "old lightning": ImportSet(
        "pytorch-lightning==1.5.10\ntorch==1.10.2\ntorchvision==0.11.3\nalbumentations==1.1.0\n",
        "import albumentations as A\nimport cv2\nimport pytorch_lightning as pl\nimport torch\n"
        "import numpy as np\nimport yaml\nfrom torch.utils.data import DataLoader\n",
        ("albumentations", "pytorch-lightning"),
    ),
    "keras": ImportSet(
        "tensorflow==2.15.0\nscikit-learn\nmatplotlib\n",
        "import tensorflow as tf\nfrom tensorflow import keras\nimport numpy as np\nimport h5py\n"
        "from sklearn.model_selection import train_test_split\nimport matplotlib.pyplot as plt\n",
        ("scikit-learn", "matplotlib", "tensorflow"),
    ),
    "jax": ImportSet(
        "jax[cuda12]\nflax\noptax\norbax-checkpoint\nabsl-py\nml-collections\ntensorflow-datasets\n"
        "clu\n",
        "from absl import app, flags, logging\nimport jax\nimport jax.numpy as jnp\nimport optax\n"
        "from flax import linen as nn\nfrom flax.training import train_state\nimport numpy as np\n"
        "import ml_collections\nimport tensorflow_datasets as tfds\nfrom clu import metric_writers\n"
        "import orbax.checkpoint as ocp\n",
        ("clu", "tensorflow-datasets"),
    ),
    "reinforcement learning": ImportSet(
        "gymnasium[mujoco]\nstable-baselines3[extra]\ntyro\ntensorboard\nwandb\n",
        "import gymnasium as gym\nimport numpy as np\nimport torch\nimport tyro\nimport mujoco\n"
        "from stable_baselines3 import PPO\nfrom torch.utils.tensorboard import SummaryWriter\n"
        "import pandas as pd\nimport cv2\n",
        ("tyro", "stable-baselines3[extra]"),
    ),
    "graphs": ImportSet(
        "torch==2.1.0\ntorch-geometric==2.4.0\nogb\nnetworkx\n",
        "import torch\nimport torch_geometric.transforms as T\nfrom torch_geometric.nn import GCNConv\n"
        "from ogb.nodeproppred import PygNodePropPredDataset\nimport networkx as nx\n"
        "import numpy as np\nfrom tqdm import tqdm\n",
        ("ogb", "torch-geometric"),
    ),
    "speech": ImportSet(
        "torch\ntorchaudio\nlibrosa\nsoundfile\nsentencepiece\njiwer\npyyaml\n",
        "import torch, torchaudio\nimport librosa\nimport soundfile as sf\nimport sentencepiece as spm\n"
        "import yaml\nfrom jiwer import wer\nimport numpy as np\nimport scipy.signal\n",
        ("jiwer", "sentencepiece", "librosa", "pyyaml"),
    ),
    "medical": ImportSet(
        "monai\nnibabel\nSimpleITK\nmedpy\nscikit-image\n",
        "import nibabel as nib\nimport SimpleITK as sitk\nimport monai\nfrom monai.losses import DiceLoss\n"
        "from medpy import metric\nfrom skimage.morphology import label\nimport numpy as np\n"
        "import torch\n",
        ("nibabel", "monai"),
    ),
    "diffusion": ImportSet(
        "diffusers==0.27.2\naccelerate>=0.16.0\ntransformers>=4.25.1\ntorchvision\nftfy\n"
        "tensorboard\nJinja2\npeft\nbitsandbytes\n",
        "import argparse, logging, math\nimport accelerate\nimport diffusers\nimport numpy as np\n"
        "import torch\nimport torch.nn.functional as F\nimport transformers\nimport PIL.Image\n"
        "from accelerate import Accelerator\nfrom huggingface_hub import create_repo\n"
        "from packaging import version\nfrom peft import LoraConfig\nfrom torchvision import transforms\n"
        "from tqdm.auto import tqdm\nimport jinja2, ftfy\n",
        ("peft", "ftfy", "diffusers"),
    ),
    "geography": ImportSet(
        "rasterio\ngeopandas\nshapely\npyproj\ntorchgeo\nxarray\nnetCDF4\n",
        "import rasterio\nimport geopandas as gpd\nfrom shapely.geometry import box\nimport pyproj\n"
        "from torchgeo.datasets import RasterDataset\nimport xarray as xr\nimport netCDF4\n"
        "import pandas as pd\nimport torch\n",
        ("netCDF4", "xarray", "torchgeo"),
    ),
    "molecules": ImportSet(
        "rdkit\ndeepchem\npandas\nscikit-learn\nselfies\n",
        "from rdkit import Chem\nimport deepchem as dc\nimport pandas as pd\nimport selfies as sf\n"
        "from sklearn.metrics import roc_auc_score\nimport joblib\n",
        ("selfies", "deepchem"),
    ),
    "text": ImportSet(
        "spacy\nnltk\ngensim\nsacrebleu\nbeautifulsoup4\nlxml\nregex\nunidecode\n",
        "import nltk, spacy, gensim\nimport sacrebleu\nfrom bs4 import BeautifulSoup\nimport lxml.etree\n"
        "import regex as re\nfrom unidecode import unidecode\nimport numpy\n",
        ("beautifulsoup4", "unidecode", "gensim", "sacrebleu", "nltk"),
    ),
    "boosting": ImportSet(
        "xgboost\nlightgbm\ncatboost\noptuna\nshap\npandas\npyarrow\n",
        "import xgboost as xgb\nimport lightgbm as lgb\nfrom catboost import CatBoostClassifier\n"
        "import optuna\nimport shap\nimport pandas as pd\nimport pyarrow.parquet as pq\n"
        "import numpy as np\nimport scipy.sparse\nimport sqlalchemy\nimport yaml\n",
        ("catboost", "optuna", "shap", "pyarrow"),
    ),
    "optional imports": ImportSet(
        "torch\n",
        "import torch\nfrom typing import TYPE_CHECKING\ntry:\n    import wandb\nexcept ImportError:\n"
        "    wandb = None\ntry:\n    import apex\n    has_apex = True\nexcept Exception:\n"
        "    has_apex = False\nif TYPE_CHECKING:\n    import pandas as pd\n"
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import tensorboardX\n",
        ("torch",),
    ),
    "conditional imports": ImportSet(
        "torch\n",
        "import sys, os\nimport torch\nif sys.version_info < (3, 11):\n    import tomli as tomllib\n"
        "else:\n    import tomllib\nif os.environ.get('USE_WANDB'):\n    import wandb\n"
        "def plot():\n    import matplotlib.pyplot as plt\n"
        "def main(debug=False):\n    if not debug:\n        return\n    import ipdb\n"
        "if __name__ == '__main__':\n    main()\n",
        ("torch",),
    ),
    "src layout": ImportSet(
        "torch\nclick\n",
        "import click\nimport torch\nfrom mypackage.training import fit\nimport mypackage.data\n",
        ("click",),
        {
            "src/mypackage/__init__.py": "",
            "src/mypackage/training.py": "import torch\nfrom . import data\n",
            "src/mypackage/data.py": "from .formats import tables\n",
            "src/mypackage/formats/tables.py": "import csv\n",
        },
    ),
    "folders on the path": ImportSet(
        "torch\n",
        "import sys\nsys.path.insert(0, 'third_party/fairytale')\nimport torch\nimport dragons\n"
        "from lib.nets import net\nimport vocoder.hifi\n",
        ("torch",),
        {
            "third_party/fairytale/dragons/__init__.py": "",
            "lib/nets.py": "net = 1\n",
            "vocoder/hifi/model.py": "",
        },
    ),
    "names shared by packages": ImportSet(
        "google-cloud-storage\nprotobuf\nruamel.yaml\nmpl_toolkits_clifford\nmatplotlib\n",
        "from google.cloud import storage\nfrom google.protobuf import text_format\n"
        "import ruamel.yaml\nfrom mpl_toolkits.mplot3d import Axes3D\nfrom google import auth\n",
        (),
    ),
    "other builds of a package": ImportSet(
        "opencv-python-headless\ntensorflow-cpu\nfaiss-gpu\npsycopg2-binary\npillow-simd\n"
        "onnxruntime-gpu\n",
        "import cv2\nimport tensorflow as tf\nimport faiss\nimport psycopg2\nfrom PIL import Image\n"
        "import onnxruntime\n",
        (),
    ),
    "pip freeze": ImportSet(
        "absl-py==2.1.0\ncertifi==2024.2.2\ncharset-normalizer==3.3.2\nfilelock==3.13.1\n"
        "fsspec==2024.2.0\nidna==3.6\nJinja2==3.1.3\nMarkupSafe==2.1.5\nmpmath==1.3.0\n"
        "networkx==3.2.1\nnumpy==1.26.4\nnvidia-cublas-cu12==12.1.3.1 ; platform_system == 'Linux'\n"
        "packaging==23.2\npillow==10.2.0\nPyYAML==6.0.1\nregex==2023.12.25\nrequests==2.31.0\n"
        "safetensors==0.4.2\nsympy==1.12\ntokenizers==0.15.2\ntorch==2.2.1\ntorchvision==0.17.1\n"
        "tqdm==4.66.2\ntransformers==4.38.2\ntriton==2.2.0\ntyping_extensions==4.10.0\n"
        "urllib3==2.2.1\nhuggingface-hub==0.21.3\n",
        "import torch, yaml, requests\nfrom tqdm.auto import tqdm\nfrom PIL import Image\n"
        "from transformers import AutoModel\nfrom typing_extensions import Literal\n"
        "import numpy as np\nfrom safetensors.torch import save_file\nfrom huggingface_hub import login\n",
        (),
    ),
    "options and comments": ImportSet(
        "# for the cluster\n--extra-index-url https://download.pytorch.org/whl/cu118\n"
        "torch == 2.1.0  # as on the laptop\nscikit_learn>=1.0,<2\n\n"
        "tqdm ~= 4.60 ; python_version >= '3.8'\npywin32 ; sys_platform == 'win32'\n"
        "pandas[excel]\n",
        "import torch\nfrom sklearn.svm import SVC\nfrom tqdm import trange\nimport pandas as pd\n"
        "import openpyxl\n",
        ("pandas[excel]",),
    ),
    "a package of a repository": ImportSet(
        "torch\ntimm\ngit+https://github.com/someone/strange-nets.git\n"
        "clip @ git+https://github.com/someone/CLIP.git\n",
        "import torch, timm\nimport strange_nets\nimport clip\nimport ftfy\n",
        (),
    ),
    "a package nobody knows": ImportSet(
        "torch\nour-lab-tools-77\n",
        "import torch\nimport our_lab_tools_77\nimport labtools\n",
        (),
    ),
    "the project itself": ImportSet(
        "-e .\ntorch\n",
        "import torch\nimport mynets\nimport einops\n",
        (),
        {"setup.py": "from setuptools import setup\nsetup(install_requires=['einops'])\n"},
    ),
    "a function that is called": ImportSet(
        "torch\nfire\n",
        "import torch\ndef main():\n    import fire\n    fire.Fire(train)\ndef train():\n    pass\n"
        "if __name__ == '__main__':\n    main()\n",
        ("fire",),
    ),
    "helper modules": ImportSet(
        "torch\neinops\npytorch-fid\nlpips\neasydict\nyacs\naddict\nlmdb\n",
        "from config import cfg\nfrom nets import blocks\nimport lmdb\nfrom addict import Dict\n",
        ("yacs", "easydict", "einops", "lmdb", "addict", "lpips"),
        {
            "config.py": "from yacs.config import CfgNode\nfrom easydict import EasyDict\n",
            "nets/__init__.py": "",
            "nets/blocks.py": "import torch\nfrom einops import rearrange\nimport lpips\n",
        },
    ),
    "Windows and old Python": ImportSet(
        "numpy\r\nscipy\r\nTheano==1.0.5\r\nLasagne\r\n",
        "from __future__ import print_function\ntry:\n    import cPickle as pickle\nexcept ImportError:\n"
        "    import pickle\nimport numpy as np\nimport scipy.io\nimport theano\nimport lasagne\n",
        ("Lasagne",),
    ),
    "experiment trackers": ImportSet(
        "torch\nmlflow\ncomet_ml\ntensorboardX\nneptune\nclearml\n",
        "import comet_ml\nimport torch\nimport mlflow\nfrom tensorboardX import SummaryWriter\n"
        "import neptune\nfrom clearml import Task\n",
        ("mlflow", "comet_ml", "tensorboardX", "neptune", "clearml"),
    ),
}
