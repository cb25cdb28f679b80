"""In which order checkpoints are tried."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.checkpoints.checkpoint_names import step_in
from rabaska.node.checkpoints.order import Candidate, in_order
from rabaska.node.checkpoints.save_slots import Earlier, LoggedSave

NOW = 1_700_000_000 * 10**9
SECOND = 10**9


def at(path: str, seconds: float) -> Candidate:
    return Candidate(path, 1, NOW + int(seconds * SECOND))


def first(*found: Candidate, saves: tuple[LoggedSave, ...] = ()) -> str:
    return in_order(found, saves)[0].path


def save_of(one: Candidate, *, steps: int, job: int = 1) -> LoggedSave:
    return LoggedSave(one.path, one.mtime_ns, (job, steps))


SAVED_TOGETHER = [
    # what was written (in this order, one second apart), what a program continues from
    (["last.pt", "best.pt"], "last.pt"),
    (["checkpoint.pth.tar", "model_best.pth.tar"], "checkpoint.pth.tar"),
    (["model.pt", "optimizer.pt"], "model.pt"),
    (["model.pt", "optimizer.pt", "scheduler.pt", "rng_state.pth"], "model.pt"),
    (["checkpoint.pt", "model.pt"], "checkpoint.pt"),
    (["epoch=3-step=400.ckpt", "best-epoch=3.ckpt"], "epoch=3-step=400.ckpt"),
    (["latest/model.pt", "best/model.pt"], "latest/model.pt"),
    (["epoch-9.npz", "epoch-10.npz"], "epoch-10.npz"),
    (["model_1.pt", "model_2.pt", "model_final.pt"], "model_2.pt"),
    (["best.pt"], "best.pt"),
    (["optimizer.pt"], "optimizer.pt"),
]


@pytest.mark.parametrize(("names", "expected"), SAVED_TOGETHER, ids=str)
def test_of_files_saved_together_the_one_made_for_continuing_wins(
    names: list[str], expected: str
) -> None:
    written = [Candidate(f"output/{n}", 1, NOW + i * SECOND) for i, n in enumerate(names)]

    assert in_order(iter(written))[0].path == f"output/{expected}"


def test_a_much_newer_plain_name_beats_an_old_milestone() -> None:
    milestone = Candidate("output/epoch-10.pt", 1, NOW)
    newest = Candidate("output/model.pt", 1, NOW + 3600 * SECOND)

    assert in_order(iter([milestone, newest])) == [newest, milestone]


def test_an_optimizer_alone_comes_last_however_new_it_is() -> None:
    model = Candidate("output/model.pt", 1, NOW)
    optimizer = Candidate("output/optimizer.pt", 1, NOW + 3600 * SECOND)

    assert in_order(iter([optimizer, model])) == [model, optimizer]


def test_files_of_one_moment_are_ordered_by_number_not_by_letter() -> None:
    written = [Candidate(f"checkpoints/step-{n}.npz", 1, NOW) for n in (9, 100, 10)]

    ordered = in_order(iter(written))

    assert [re.findall(r"\d+", one.path) for one in ordered] == [["100"], ["10"], ["9"]]


@given(
    st.lists(
        st.builds(
            Candidate,
            path=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
            size=st.integers(0),
            mtime_ns=st.integers(0, 2**63),
        ),
        unique_by=lambda one: one.path,
    )
)
def test_every_candidate_is_tried_exactly_once(found: list[Candidate]) -> None:
    assert sorted(in_order(iter(found))) == sorted(found)


NO_STATE = [
    "embeddings.npz", "features.pt", "cache.pkl", "train_cache.npz", "dataset.pkl", "preds.npz",
    "resnet50-0676ba61.pth", "vgg16-397923af.pth", "hub/checkpoints/alexnet.pth",
    ".cache/weights.pt", "pretrained/vit.pth", "optimizer.pt", "samples.npz", "activations.npz",
    "epoch_2/random_states_0.pkl", "epoch_2/optimizer.bin", "epoch_2/scaler.pt", "model.pdopt",
]  # fmt: skip
STATES = ["last.pt", "model.pt", "best.pt", "epoch-3.pt", "state.ckpt", "ckpt_10.npz", "last.pkl"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("other", NO_STATE)
def test_what_is_no_state_never_comes_first_however_new_it_is(state: str, other: str) -> None:
    assert first(at(f"output/{state}", 0), at(f"output/{other}", 3600)) == f"output/{state}"


@pytest.mark.parametrize("folder", ["pretrained", "hub", "cache", "downloads", "a/pretrained/b"])
def test_what_a_program_saves_below_a_folder_for_downloads_is_a_state(folder: str) -> None:
    old = at("output/umap.npz", 0)
    last, hashed = at(f"output/{folder}/last.pt", 3600), at("output/model-0676ba61.pt", 3600)
    numbered = at(f"output/{folder}/model_epoch_5.pt", 3600)

    assert first(old, last, saves=(save_of(last, steps=5),)) == last.path
    assert first(old, hashed, saves=(save_of(hashed, steps=5),)) == hashed.path
    assert first(old, numbered) == numbered.path
    assert first(old, last) == old.path


def test_a_format_that_holds_anything_comes_after_a_models_own() -> None:
    assert first(at("output/last.pt", 0), at("output/tsne.npz", 3600)) == "output/last.pt"
    assert first(at("output/tsne.npz", 3600)) == "output/tsne.npz"


STEPS_WITH_WORDS = [
    "opt-125m-step-300.pt", "opt-125m-epoch-3.pt", "checkpoint_1000_tokens.pt",
    "results_epoch_5.pt", "checkpoint-20240101.pt", "step-12345678.ckpt", "ckpt-00001000.pt",
    "model_data_epoch_3.pt", "2024-11-17_12-00-00_step-12345678.pt", "checkpoint-10000000",
]  # fmt: skip


@pytest.mark.parametrize("name", STEPS_WITH_WORDS)
@pytest.mark.parametrize("older", ["model_init.pt", "best.pt", "init.pt", "model.pt"])
def test_a_step_in_the_name_makes_a_state_of_a_vague_word(name: str, older: str) -> None:
    assert first(at(f"output/{older}", 0), at(f"output/{name}", 3600)) == f"output/{name}"


@pytest.mark.parametrize(
    "part",
    ["optimizer-100.pt", "optimizer_step_100.pt", "optim-epoch-3.pt", "samples_epoch_3.npz",
     "embeddings-step-100.pt", "rng_step_5.pt", "vit-b0c1d2e3f4.pth"],
)  # fmt: skip
def test_a_step_in_the_name_makes_no_state_of_a_part(part: str) -> None:
    assert first(at("output/model.pt", 0), at(f"output/{part}", 3600)) == "output/model.pt"


@given(
    st.sampled_from(
        ["model-{}.pt", "checkpoint-{}.pt", "checkpoint-{}", "ckpt-{}.ckpt", "step-{}"]
    ),
    st.integers(1, 10**40),
    st.integers(0, 40),
)
def test_a_step_of_any_number_of_digits_is_no_hash(name: str, step: int, zeros: int) -> None:
    written = "output/" + name.format("0" * zeros + str(step))
    before = "output/" + name.format("0" * zeros + str(step - 1))

    assert first(at("output/best.pt", 0), at(written, 3600)) == written
    assert first(at(before, 3600), at(written, 0)) == written


numbered = st.sampled_from(
    ["epoch-{}.pt", "epoch{:03d}.pth", "model_{}.pt", "step={}.ckpt", "checkpoint-{}",
     "run/ckpt_{}.npz", "global_step{}", "{:06d}.pt", "e/iter_{}_of_run.pt", "{}steps.pt",
     "version_3/epoch={}-val_loss=0.25.ckpt", "fold2_epoch_{}.pt", "checkpoint-{}/model.pt"]
)  # fmt: skip


@given(numbered, st.dictionaries(st.integers(0, 10**6), st.integers(0, 10**12), min_size=1))
def test_the_last_step_comes_first_whatever_the_clock_said(
    name: str, written: dict[int, int]
) -> None:
    found = [Candidate("output/" + name.format(step), 1, when) for step, when in written.items()]

    ordered = in_order(found)

    assert [one.path for one in ordered] == [
        "output/" + name.format(step) for step in sorted(written, reverse=True)
    ]


@given(st.lists(st.tuples(st.sampled_from(STATES + NO_STATE), st.integers(0, 100))), st.randoms())
def test_the_order_does_not_depend_on_how_they_were_listed(
    written: list[tuple[str, int]], chance: random.Random
) -> None:
    found = [at(f"output/{name}", when) for name, when in dict(written).items()]
    shuffled = list(found)
    chance.shuffle(shuffled)

    assert in_order(found) == in_order(shuffled)


@given(st.lists(st.integers(-(10**5), 10**5), min_size=1, max_size=20), st.data())
def test_of_what_was_seen_being_saved_the_last_comes_first_whatever_the_clock_said(
    seconds: list[int], data: st.DataObject
) -> None:
    """Each save has another name; the clock goes as it likes."""
    names = data.draw(st.permutations([f"output/state_{chr(97 + i)}.pt" for i in range(20)]))
    found = [at(name, when) for name, when in zip(names, seconds, strict=False)]
    saves = tuple(save_of(one, steps=10 * count) for count, one in enumerate(found, 1))

    assert in_order(found, saves) == found[::-1]


def test_steps_that_begin_again_are_followed_where_somebody_watched() -> None:
    """A second stage of training counts its epochs from 1."""
    old, new = at("output/epoch-10.pt", 0), at("output/epoch-3.pt", 600)
    saves = (save_of(old, steps=100), save_of(new, steps=130))

    assert first(old, new, saves=saves) == "output/epoch-3.pt"
    assert first(old, new) == "output/epoch-10.pt"


def test_a_slow_save_of_two_files_is_one_save_where_somebody_watched() -> None:
    last, best = at("output/last.pt", 0), at("output/best.pt", 45)
    saves = (save_of(last, steps=7), save_of(best, steps=7))

    assert first(last, best) == "output/best.pt"
    assert first(last, best, saves=saves) == "output/last.pt"


def test_a_download_that_looks_like_a_model_comes_after_what_the_program_saved() -> None:
    own, download = at("output/net.pth", 0), at("output/inception.pth", 3600)

    assert first(own, download, saves=(save_of(own, steps=3),)) == "output/net.pth"


def test_a_save_that_nobody_watched_counts_by_its_name_and_time() -> None:
    """Watching was lost after epoch 1, or the program saves by other means, too."""
    seen, later = at("output/epoch-1.pt", 0), at("output/epoch-2.pt", 600)
    other = at("output/checkpoint-000", 1200)
    set_back = at("output/epoch-2.pt", -3600)

    assert first(seen, later, saves=(save_of(seen, steps=3),)) == "output/epoch-2.pt"
    assert first(seen, set_back, saves=(save_of(seen, steps=3),)) == "output/epoch-2.pt"
    assert first(seen, other, saves=(save_of(seen, steps=3),)) == "output/checkpoint-000"


SLOTS = [("output/ckpt_0.pkl", "output/ckpt_1.pkl"), ("output/model_1.pt", "output/model_2.pt")]


@pytest.mark.parametrize(("low", "high"), SLOTS)
def test_a_slot_that_was_written_again_since_the_last_look_is_the_newest(
    low: str, high: str
) -> None:
    found = {low: [1, NOW], high: [1, NOW + 100 * SECOND]}
    now = [at(low, 200), at(high, 100)]

    assert in_order(now, (), Earlier(looks=[found]))[0].path == low
    assert in_order(now, (), Earlier(looks=[{low: [1, NOW]}]))[0].path == high
    assert in_order(now)[0].path == high


@pytest.mark.parametrize(
    ("low", "high"),
    [("epoch-0.pt", "epoch-1.pt"), ("step_1.pt", "step_2.pt"), ("m_3.pt", "m_4.pt")],
)
def test_a_step_that_was_written_again_is_still_a_step(low: str, high: str) -> None:
    found = {low: [1, NOW], high: [1, NOW + 100 * SECOND]}

    assert in_order([at(low, 200), at(high, 100)], (), Earlier(looks=[found]))[0].path == high


def test_slots_that_somebody_once_watched_are_known() -> None:
    saves = tuple(LoggedSave(f"output/ckpt_{n % 2}.pt", NOW + n, (1, 10 * n)) for n in range(4))

    assert first(at("output/ckpt_0.pt", 200), at("output/ckpt_1.pt", 100), saves=saves).endswith(
        "ckpt_0.pt"
    )


def test_a_folder_was_saved_when_its_files_were() -> None:
    old, new = at("output/checkpoint-500", 7200), at("output/checkpoint-20", 3600)
    saves = (
        LoggedSave("output/checkpoint-500/model.safetensors", 1, (1, 500)),
        LoggedSave("output/checkpoint-20/model.safetensors", 2, (2, 20)),
    )

    assert first(old, new, saves=saves) == "output/checkpoint-20"


@pytest.mark.parametrize(
    ("path", "family", "place"),
    [
        ("output/epoch=3-step=400.ckpt", "output/epoch=#-step=#.ckpt", (3, 400)),
        ("output/epoch=3-val_loss=0.25.ckpt", "output/epoch=#-val_loss=*.ckpt", (3, -1)),
        ("output/val_loss=0.9-epoch=1.ckpt", "output/val_loss=*-epoch=#.ckpt", (1, -1)),
        ("output/version_1/last.ckpt", "output/version_1/last.ckpt", (-1, -1)),
        ("output/resnet50.pt", "output/resnet50.pt", (-1, -1)),
        ("output/model-00001-of-00003.safetensors", "output/model-#-of-00003.safetensors", (-1, 1)),
        ("output/seed_3.pt", "output/seed_3.pt", (-1, -1)),
    ],
)
def test_steps_are_read_from_names(path: str, family: str, place: tuple[int, int]) -> None:
    assert step_in(path) == (family, place)
