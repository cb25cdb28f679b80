"""The table [search] of rabaska.toml: what a search tries, and how."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from rabaska.node.search import space as spaces
from rabaska.settings.validation import Line


def _space(given: dict[str, Any]) -> dict[str, Any]:
    if not given:
        return given  # `search run` says what is missing; nobody else needs it
    try:
        spaces.parameters(given)
    except spaces.WrongSpace as problem:
        raise ValueError(f"`{problem.name}`: {problem}" if problem.name else str(problem)) from None
    return given


_RANGE = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_VALUES = {"type": "array", "minItems": 1}
_PARAMETER = {
    "anyOf": [
        _VALUES,
        {
            "type": "object",
            "properties": {
                "log": _RANGE,
                "float": _RANGE,
                "int": _RANGE,
                "choice": _VALUES,
                "points": {"type": "integer", "minimum": 1},
                "when": {"type": "object"},
            },
            "additionalProperties": False,
        },
    ]
}
Space = Annotated[
    dict[str, Any],
    AfterValidator(_space),
    WithJsonSchema({"type": "object", "additionalProperties": _PARAMETER}),
]


class SearchTable(BaseModel):
    """What `rabaska search` tries: many runs of the program, each with other values of some of its
    options."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )

    metric: Line = ""
    """What is compared: any number that the program reports under this name, such as
    `val_accuracy`."""
    goal: Literal["max", "min"] | None = None
    """Whether the largest or the smallest value of `metric` is the best; guessed from its name when
    left out."""
    trials: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    """How many trials there are; 20 when left out, or all of a grid."""
    at_once: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """How many trials run at the same time; 4 when left out, and on this computer as many as it has
    GPUs or cores for."""
    method: Literal["grid", "random", "sobol", "tpe", "cma-es"] = "random"
    """How values are chosen: `grid` tries all combinations; `random` and `sobol` spread over the
    space; `tpe` and `cma-es`, which are Optuna's, learn from the results so far."""
    stopping: Literal["none", "median", "asha", "hyperband"] = "none"
    """Which trials are stopped early: with `median`, those that are worse than the median of the
    others after as many reports; with `asha`, all but the best third at 1, 3, 9, 27 … reports;
    `hyperband` does the same, and lets some trials run longer before."""
    first_report: Annotated[int, Field(ge=1)] = 1
    """Reports of `metric` before which no trial is stopped early."""
    reduction: Annotated[int, Field(ge=2, le=100)] = 3
    """For `asha` and `hyperband`: of so many trials, one goes on."""
    take: Literal["last", "best"] = "last"
    """Which value of `metric` counts for a trial: the `last` that it reported, or the `best`."""
    seed: int = 0
    """Chooses the random values: the same seed proposes the same trials."""
    trials_per_gpu: Annotated[int, Field(ge=1, le=64)] = 1
    """How many trials share the GPU, or the cores, of one job."""
    keep_best: Annotated[int, Field(ge=1)] = 20
    """How many of the best trials keep all that they wrote, whatever `keep_others` says."""
    keep_others: Literal["all", "checkpoint", "nothing"] = "checkpoint"
    """What is kept of the other trials that ended, a hundred at a time: `all` of it; the
    `checkpoint` that is newest, with log and metrics; or `nothing` but their line in the table."""
    repeats: Annotated[int, Field(ge=0, le=100)] = 0
    """How often the best trials are run once more, each time with another seed, when all others are
    over. `rabaska search best` then compares means, and names no winner within the noise."""
    repeat_best: Annotated[int, Field(ge=1, le=100)] = 3
    """For `repeats`: how many of the best."""
    seed_option: Line = ""
    """For `repeats`: the option of the program that takes a seed; found by its name when left
    out."""
    values_as: Literal["options", "overrides", "environment", "file"] | None = None
    """How values reach the program: `options` (`--lr 0.1`), `overrides` (`lr=0.1`, as Hydra reads
    them), `environment` variables (`LR=0.1`), or a `file` whose path follows `file_option`. When
    left out: as the program declares its options."""
    file_option: Line = "--config"
    """For `values_as = "file"`: the option that the file's path follows. Where `command` has it
    with a JSON or YAML file of the project, each trial gets a copy of that file with its own
    values: `lr`, or `"optimizer.lr"` for an `lr` below `optimizer`. Else it gets a JSON file of its
    values, which YAML reads too."""
    space: Space = {}
    """The options that are varied, with their values: `lr = {log = [1e-5, 1e-1]}`,
    `batch = [16, 32]`, `depth = {int = [2, 8]}`, `drop = {float = [0.0, 0.5]}`. With `when`, an
    option counts only for some values of another: `when = {optimizer = "sgd"}`. With `points`, a
    grid takes so many values of a range."""
