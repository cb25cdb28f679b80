"""Every optimizer, scheduler, scaler and average of PyTorch goes on exactly from a checkpoint.

Classes are found by looking into PyTorch: one that is new there has no recipe here, and fails.
"""

import copy
import inspect
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.optim import lr_scheduler, swa_utils  # noqa: E402

from rabaska.node.checkpoints import commit  # noqa: E402
from rabaska.training import NotSaveable, full_state, read_checkpoint, state_tree  # noqa: E402
from rabaska.training.checkpoint_writer import BackgroundSave, write  # noqa: E402
from rabaska.training.snapshot_memory import SnapshotMemory  # noqa: E402

BEFORE, AFTER = 7, 9  # steps before the checkpoint, and in all


def there_and_back(value: Any, folder: Path) -> Any:
    text, tensors = state_tree.encode(value, "value")
    write(str(folder), BackgroundSave(1, SnapshotMemory().take(tensors), text, {}, lambda: None))
    return read_checkpoint.read(str(folder / commit.folder_name(1))).state


def classes(module: Any, base: type) -> list[str]:
    found = {
        name: each
        for name, each in vars(module).items()
        if inspect.isclass(each) and issubclass(each, base) and not name.startswith("_")
    }
    return sorted(name for name, each in found.items() if each is not base)


def model(*, sparse: bool = False, flat: bool = True) -> Any:
    torch.manual_seed(1)
    if sparse:
        return torch.nn.EmbeddingBag(8, 4, sparse=True, mode="sum")
    return torch.nn.Sequential(torch.nn.Linear(4, 6, bias=flat), torch.nn.Linear(6, 2, bias=flat))


def batch(step: int, *, sparse: bool) -> Any:
    source = torch.Generator().manual_seed(step)
    if sparse:
        return torch.randint(0, 8, (3, 2), generator=source)
    return torch.randn(3, 4, generator=source)


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "ASGD": {"t0": 3.0}, "Adadelta": {}, "Adafactor": {}, "Adagrad": {"lr_decay": 0.1},
    "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {},
    "LBFGS": {"history_size": 3, "line_search_fn": "strong_wolfe"},
    "Muon": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {}, "SGD": {"momentum": 0.9, "nesterov": True}, "SparseAdam": {},
}  # fmt: skip


def scaled(epoch: int) -> float:
    return 1.0 / (1 + epoch)


class Scaled:
    """A function with a state of its own, which PyTorch saves."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, epoch: int) -> float:
        self.seen += 1
        return 1.0 / (1 + self.seen)


SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.MultiStepLR(o, [2, 5, 5, 8]), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, total_iters=8),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="exp_range"),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, Scaled()),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, total_iters=8),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 8, 8]),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, scaled),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 10, power=2.0),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, cooldown=1),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, total_iters=3), lr_scheduler.MultiStepLR(o, [2, 4, 4])], [4]
    ),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "SWALR": lambda o: swa_utils.SWALR(o, swa_lr=0.01, anneal_epochs=5),
}


def made(optimizer: str, scheduler: str = "", *, average: bool = False) -> dict[str, Any]:
    sparse = optimizer == "SparseAdam"
    net = model(sparse=sparse, flat=optimizer != "Muon")
    parts = {"model": net}
    options = {"lr": 0.05, **OPTIMIZERS[optimizer]}
    parts["optimizer"] = getattr(torch.optim, optimizer)(net.parameters(), **options)
    if scheduler:
        parts["scheduler"] = SCHEDULERS[scheduler](parts["optimizer"])
    if average:
        parts["average"] = swa_utils.AveragedModel(
            net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
        )
    return parts


def train(parts: dict[str, Any], steps: range) -> None:
    net, optimizer = parts["model"], parts["optimizer"]
    sparse = isinstance(net, torch.nn.EmbeddingBag)

    for step in steps:

        def loss(step: int = step) -> Any:
            optimizer.zero_grad()
            value = net(batch(step, sparse=sparse)).pow(2).mean()
            value.backward()
            return value

        value = optimizer.step(loss)
        if "scheduler" in parts:
            plateau = isinstance(parts["scheduler"], lr_scheduler.ReduceLROnPlateau)
            parts["scheduler"].step(*([value.item()] if plateau else []))
        if "average" in parts:
            parts["average"].update_parameters(net)


def goes_on_exactly(make: Callable[[], dict[str, Any]], folder: Path) -> None:
    whole, first, second = make(), make(), make()
    train(whole, range(AFTER))
    train(first, range(BEFORE))
    states = {name: part.state_dict() for name, part in first.items()}

    back = there_and_back(copy.deepcopy(states), folder)
    same(back, states)
    full_state.restore(back, second)
    train(second, range(BEFORE, AFTER))

    same(
        {name: part.state_dict() for name, part in second.items()},
        {name: part.state_dict() for name, part in whole.items()},
    )


def same(one: Any, other: Any, where: str = "state") -> None:
    """Equal to the last bit, and of the same types all the way down."""
    assert type(one) is type(other), f"{where}: {type(one)} is no {type(other)}"
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype, where
        assert torch.equal(one, other), where
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            same(mine, theirs, f"{where}.{place}")
    else:
        assert one == other, where


@pytest.mark.parametrize("name", classes(torch.optim, torch.optim.Optimizer))
def test_every_optimizer_goes_on_exactly(name: str, tmp_path: Path) -> None:
    assert name in OPTIMIZERS, "PyTorch has a new optimizer: give it a line in OPTIMIZERS"

    goes_on_exactly(lambda: made(name), tmp_path)


@pytest.mark.parametrize(
    "name",
    sorted({
        name for module in (lr_scheduler, swa_utils)
        for name in classes(module, lr_scheduler.LRScheduler)
    }),
)  # fmt: skip
def test_every_scheduler_goes_on_exactly(name: str, tmp_path: Path) -> None:
    assert name in SCHEDULERS, "PyTorch has a new scheduler: give it a line in SCHEDULERS"

    goes_on_exactly(lambda: made("SGD", name), tmp_path)


@pytest.mark.parametrize(
    "name", sorted({*SCHEDULERS} - {"ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"})
)
def test_schedulers_inside_of_others_go_on_exactly(name: str, tmp_path: Path) -> None:
    def make() -> dict[str, Any]:
        parts = made("SGD")
        optimizer = parts["optimizer"]
        inside = [SCHEDULERS[name](optimizer), SCHEDULERS["MultiStepLR"](optimizer)]
        parts["scheduler"] = lr_scheduler.SequentialLR(optimizer, inside, [5])
        return parts

    goes_on_exactly(make, tmp_path)


def test_an_average_of_the_weights_goes_on_exactly(tmp_path: Path) -> None:
    goes_on_exactly(lambda: made("AdamW", "SWALR", average=True), tmp_path)


def test_rates_that_are_tensors_go_on_exactly(tmp_path: Path) -> None:
    def make() -> dict[str, Any]:
        net = model()
        optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(0.05), capturable=False)
        inside = [lr_scheduler.LinearLR(optimizer), lr_scheduler.StepLR(optimizer, 2)]
        scheduler = lr_scheduler.SequentialLR(optimizer, inside, [4])
        return {"model": net, "optimizer": optimizer, "scheduler": scheduler}

    goes_on_exactly(make, tmp_path)


def test_a_gradient_scaler_comes_back(tmp_path: Path) -> None:
    first = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        first.scale(weight.sum()).backward()
        first.step(optimizer)
        first.update()

    back = there_and_back(first.state_dict(), tmp_path)
    second = torch.amp.GradScaler("cpu")
    second.load_state_dict(back)

    same(back, first.state_dict())
    assert second.get_scale() == first.get_scale()


class Point(NamedTuple):
    x: int
    y: float


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "value",
    [
        Counter({3: 2, 1: 1}), Counter(), OrderedDict(b=1, a=2), defaultdict(list, {"a": [1]}),
        defaultdict(int, {1: 2}), defaultdict(None, {"x": None}), deque([1, 2], maxlen=3), deque(),
        {1, 2}, frozenset({1}), (1, (2.0, None)), Point(1, 2.5), Pair(1, [2]), torch.Size([2, 3]),
        bytearray(b"x"), b"x", {"inside": [Counter({2: 1})]}, {None: 1, (1, 2): 2}, {},
        [float("inf"), -0.0, 2**80], True, "", None, defaultdict(dict, {0: {"a": 1}}),
        {"exp_avg": torch.tensor([1.0]), 0: deque([torch.tensor(2)])},
    ],
    ids=repr,
)  # fmt: skip
def test_every_container_comes_back_as_what_it_was(value: Any, tmp_path: Path) -> None:
    back = there_and_back({"value": value}, tmp_path)["value"]

    if not isinstance(value, dict) or 0 not in value:
        assert back == value
    assert type(back) is type(value)
    assert getattr(back, "maxlen", 0) == getattr(value, "maxlen", 0)
    assert getattr(back, "default_factory", 0) is getattr(value, "default_factory", 0)


class Settings(dict):  # type: ignore[type-arg]
    """As easydict and its like make them."""


class Numbers(list):  # type: ignore[type-arg]
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Settings(a=1), "Settings"), (Numbers([1]), "Numbers"),
        (defaultdict(lambda: 0), "default_factory"), (torch.max(torch.ones(2, 2), 0), "max"),
        (torch.ones(2).to_sparse(), "sparse"), (slice(1), "slice"),
    ],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_what_would_come_back_as_something_else_is_refused_by_name(value: Any, named: str) -> None:
    with pytest.raises(NotSaveable) as refused:
        state_tree.encode({"deep": [value]}, "scheduler")

    assert "scheduler.deep.0" in str(refused.value)
    assert named in str(refused.value)


def test_a_dictionary_of_any_class_may_be_a_part(tmp_path: Path) -> None:
    part = Settings(step=3)

    text, _ = full_state.encoded({"config": part}, {}, [])
    part["step"] = 4
    full_state.restore(state_tree.decode(text, lambda _: None)["parts"], {"config": part})

    assert (type(part), part) == (Settings, {"step": 3})
