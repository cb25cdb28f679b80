"""The files by which the checkpoint folders of libraries are known, and which comes last."""

from typing import NamedTuple, Sequence

LAST = "trainer_state.json"
UNRENAMED = ".orbax-checkpoint-tmp"  # in the name of a folder that Orbax is still writing
DATA_SUFFIXES = (
    ".pt",
    ".pth",
    ".tar",
    ".ckpt",
    ".bin",
    ".safetensors",
    ".npz",
    ".npy",
    ".h5",
    ".hdf5",
    ".keras",
    ".pkl",
    ".msgpack",
)


class FolderKind(NamedTuple):
    name: str  # a regular expression for all of the folder's name
    marks: Sequence[str]  # patterns of names in the folder; one of them is there
    last: str = ""  # the file that is written last; "" where it is none of the folder's
    pointer: str = ""  # a file beside the folder that names the newest complete one
    parts: Sequence[str] = ()  # patterns of its files, where it may share a folder with others
    data: Sequence[str] = ()  # patterns of names of which one proves that a save was begun


_OF_ACCELERATE = (
    "random_states_*.pkl",
    "model*.safetensors",
    "model*.safetensors.index.json",
    "optimizer*.bin",
    "pytorch_model*.bin",
    "pytorch_model*.bin.index.json",
    "scheduler*.bin",
    "sampler*.bin",
    "dl_state_dict*.bin",
    "scaler.pt",
    "custom_checkpoint_*.pkl",
)
_OF_DEEPSPEED = (
    "mp_rank_*_model_states.pt",
    "zero_pp_rank_*_states.pt",
    "bf16_zero_pp_rank_*_states.pt",
    "layer_*-model_states.pt",
)
# Folders: of FSDP and of DeepSpeed.
_WEIGHTS = _OF_ACCELERATE + ("pytorch_model*", "optimizer_*")
_OF_TRAINER = _WEIGHTS + (
    "adapter_model*",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state*.pth",
    "global_step*",
)
_RANDOM = "random_states_0.pkl"
MEGATRON_TRACKER = "latest_checkpointed_iteration.txt"
KINDS = [
    FolderKind(r"checkpoint-\d+", ("training_args.bin", LAST), LAST, data=_OF_TRAINER),
    FolderKind(r"checkpoint_\d+", ("random_states_*.pkl", "optimizer.bin"), _RANDOM, data=_WEIGHTS),
    FolderKind(r".*", ("random_states_*.pkl",), _RANDOM, parts=_OF_ACCELERATE, data=_WEIGHTS),
    FolderKind(r"iter_\d+", ("mp_rank_*", "*.distcp"), pointer=MEGATRON_TRACKER),
    FolderKind(r".*", ("*.distcp",), ".metadata", parts=("*.distcp", ".metadata")),
    FolderKind(r".*", ("_CHECKPOINT_METADATA", "manifest.ocdbt")),
    FolderKind(r".*", _OF_DEEPSPEED, pointer="latest", parts=_OF_DEEPSPEED),
]
