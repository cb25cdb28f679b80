"""Trainings with one fault each: what is changed in `exact_program.py`, which has none."""

from pathlib import Path

EXACT = Path(__file__).with_name("exact_program.py").read_text()

_SAVE = """\
    torch.save(state, f"{asked.out}/last.pt.tmp")
    os.replace(f"{asked.out}/last.pt.tmp", f"{asked.out}/last.pt")
"""
_LOAD = """\
    saved = torch.load(asked.resume)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["rng"])
    step, first = saved["step"], saved["epoch"]
"""
_NO_RANDOM_STATE = (
    ('    torch.set_rng_state(saved["rng"])\n', ""),
    ('        "rng": torch.get_rng_state(),\n', ""),
)
_NO_DROPOUT = ("torch.nn.Dropout(0.2)", "torch.nn.ReLU()")

# fault: (what stands in the exact program, what stands there instead), …
CHANGES = {
    "no_optimizer_state": (
        ('    optimizer.load_state_dict(saved["optimizer"])\n', ""),
        ('        "optimizer": optimizer.state_dict(),\n', ""),
    ),
    "no_scheduler": (
        (
            '    scheduler.load_state_dict(saved["scheduler"])\n',
            '    for group in optimizer.param_groups:\n        group["lr"] = group["initial_lr"]\n',
        ),
        ('        "scheduler": scheduler.state_dict(),\n', ""),
    ),
    "no_random_state": _NO_RANDOM_STATE,
    "reshuffled_data": (*_NO_RANDOM_STATE, _NO_DROPOUT, (", generator=order", "")),
    "unseeded_workers": (
        _NO_DROPOUT,
        ("import torch\n", "import numpy as np\nimport torch\n"),
        (
            "torch.manual_seed(0)\n",
            """
class Points(torch.utils.data.Dataset):
    def __len__(self):
        return len(inputs)

    def __getitem__(self, place):
        noise = np.random.default_rng().normal(0.0, 0.1, 8)
        return inputs[place] + torch.tensor(noise, dtype=torch.float32), targets[place]


torch.manual_seed(0)
""",
        ),
        (
            "data = torch.utils.data.TensorDataset(torch.randn(40, 8), torch.randn(40, 1))\n",
            "inputs, targets = torch.randn(40, 8), torch.randn(40, 1)\n",
        ),
        ("DataLoader(data, ", "DataLoader(Points(), num_workers=1, "),
    ),
    "only_weights": (
        (_LOAD, "    model.load_state_dict(torch.load(asked.resume))\n"),
        ("torch.save(state, ", "torch.save(model.state_dict(), "),
    ),
    "never_saves": ((_SAVE, ""),),
    "saved_in_place": (
        ("import os\n", "import io\n"),
        (
            _SAVE,
            """\
    content = io.BytesIO()
    torch.save(state, content)
    # A file system that takes its time.
    with open(f"{asked.out}/last.pt", "wb", buffering=0) as stream:
        stream.write(content.getvalue()[:2000])
        time.sleep(0.2)
        stream.write(content.getvalue()[2000:])
""",
        ),
    ),
}


def program_with(fault):
    text = EXACT
    for instead_of, written in CHANGES[fault]:
        assert instead_of in text, f"{fault}: the exact program has no {instead_of!r}"
        text = text.replace(instead_of, written)
    return text
