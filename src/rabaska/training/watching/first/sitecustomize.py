"""Run by Python itself at its start: the modules worth watching are waited for.

It must be harmless in every Python that a job may start, old ones and those of other tools; what
goes wrong in here is passed over. The site's own sitecustomize, which this one hides, runs last.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` itself would cost every Python some milliseconds
if TYPE_CHECKING:
    from typing import Any, Optional  # noqa: F401

    from rabaska.training.watching.watcher import Watcher  # noqa: F401

WATCHED = (
    "torch",
    "torch.serialization",
    "torch.optim.optimizer",
    "torch.utils.data.dataloader",
    "torch.autograd",
    "torch.utils.tensorboard.writer",
    "tensorboardX.writer",
    "lightning.fabric.loggers.csv_logs",
    "lightning_fabric.loggers.csv_logs",
    "wandb.sdk.wandb_run",
    "mlflow.tracking.fluent",
    "numpy",
    "safetensors.torch",
    "safetensors.numpy",
    "keras.src.saving.saving_lib",
    "keras.src.legacy.saving.legacy_h5_format",
    "keras.src.callbacks.callback_list",
    "lightning.fabric.utilities.cloud_io",
    "lightning_fabric.utilities.cloud_io",
    "lightning.pytorch.loops.fit_loop",
    "pytorch_lightning.loops.fit_loop",
    "transformers.training_args",
)


class ImportHook:
    """Among the finders of modules: has each of the watched ones attached once it is loaded."""

    def __init__(self):  # type: () -> None
        self._names = set(WATCHED)
        self._watcher = None  # type: Optional[Watcher]

    def find_spec(self, name, path=None, target=None):  # type: (str, Any, Any) -> Any
        # Each time: a program may only look whether a module is there, or load it anew.
        if name not in self._names:
            return None
        spec = self._found(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._attach_after(spec.loader)
        return spec

    def _found(self, name, path, target):  # type: (str, Any, Any) -> Any
        """What the other finders say, in their order."""
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _attach_after(self, loader):  # type: (Any) -> None
        load = loader.exec_module

        def exec_module(module):  # type: (Any) -> None
            load(module)
            self.attach(module)

        if hasattr(loader, "__dict__"):
            # The loader itself stays: programs ask it for their sources.
            loader.exec_module = exec_module

    def attach(self, module):  # type: (Any) -> None
        try:
            if self._watcher is None:
                from rabaska.training.watching.watcher import Watcher

                self._watcher = Watcher(os.environ)
            self._watcher.attach(module)
        except Exception:
            self._names = set()


def begin():  # type: () -> None
    if sys.version_info < (3, 8) or os.environ.get("RABASKA_WATCH") != "1":
        return
    waiting = ImportHook()
    sys.meta_path.insert(0, waiting)
    for name in WATCHED:
        if name in sys.modules:  # a .pth file of the site may have been quicker
            waiting.attach(sys.modules[name])


def give_way():  # type: () -> None
    """Take our folder off the path and run the sitecustomize that comes next on it, if any."""
    here = os.path.dirname(__file__)
    sys.path[:] = [path for path in sys.path if path != here]
    ours = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as problem:
        if problem.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, ours)  # type: ignore[arg-type]


if __name__ == "sitecustomize":
    try:
        begin()
    except Exception:
        sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "Waiting"]
    give_way()
