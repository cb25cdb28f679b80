"""Checks of where data is said to be: on the cluster, which is asked, and on this computer."""

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from rabaska.checkup.finding import Finding
from rabaska.domain.clusters import Cluster
from rabaska.domain.data_places import SITE, data_place
from rabaska.domain.projects import IN_PLACE, Dataset, Project
from rabaska.domain.shell_words import expanding
from rabaska.domain.untrusted import count

QUESTION = "data-places"
_MOST_NAMES = 200  # of a folder that are looked through for one like it
_SHOWN = 5

# `place NUMBER KIND PATH`; of a path that is missing also what is nearest to it.
_ASK = rf"""
look_at() {{
  if [ -d "$2" ] && [ -r "$2" ] && [ -x "$2" ]; then kind=folder
  elif [ -f "$2" ] && [ -r "$2" ]; then kind=file
  elif [ -e "$2" ]; then kind=closed
  else kind=missing; fi
  printf 'place\t%s\t%s\t%s\n' "$1" "$kind" "$2"
  [ "$kind" = missing ] || return 0
  near=$(dirname -- "$2"); while [ ! -e "$near" ]; do near=$(dirname -- "$near"); done
  printf 'near\t%s\t%s\n' "$1" "$near"
  ls -1 -- "$near" 2>/dev/null | head -n {_MOST_NAMES} | while IFS= read -r name; do
    printf 'name\t%s\t%s\n' "$1" "$name"
  done
}}
"""


@dataclass(frozen=True)
class PlaceAnswer:
    """What a cluster said of one path."""

    kind: str  # folder, file, closed or missing
    path: str  # its own variables expanded
    near: str = ""  # the nearest folder above that is there
    names: tuple[str, ...] = ()  # some of what that folder holds

    @property
    def is_there(self) -> bool:
        return self.kind in ("folder", "file")


def question(project: Project, cluster: Cluster) -> dict[str, str]:
    """The question by name; none where all data is on this computer."""
    asked = [
        f"look_at {number} {expanding(path)}"
        for number, path in enumerate(_asked(project, cluster))
        if path
    ]
    return {QUESTION: _ASK + "\n".join(asked)} if asked else {}


def _asked(project: Project, cluster: Cluster) -> list[str]:
    """For each dataset the path that is asked after, or nothing."""
    return [_asked_of(dataset, cluster) for dataset in project.datasets]


def _asked_of(dataset: Dataset, cluster: Cluster) -> str:
    if dataset.at:
        place = data_place(dataset.at, cluster.datasets)
        return place.path if place and not place.nodes_only else ""
    if dataset.path and not cluster.is_here and not os.path.exists(dataset.path):  # noqa: PTH110
        return str(dataset.path)  # perhaps it is meant to be there
    return ""


def read_answers(project: Project, text: str) -> dict[str, PlaceAnswer]:
    """The answers by dataset."""
    found: dict[int, PlaceAnswer] = {}
    near: dict[int, str] = {}
    names: dict[int, list[str]] = {}
    for line in text.splitlines():
        cells = line.split("\t", 3)
        number = count(cells[1]) if len(cells) > 2 else None
        if number is None:
            continue
        if cells[0] == "place" and len(cells) == 4 and cells[3].startswith("/"):
            found[number] = PlaceAnswer(cells[2], cells[3])
        elif cells[0] == "near":
            near[number] = cells[2]
        elif cells[0] == "name":
            names.setdefault(number, []).append(cells[2])
    return {
        dataset.name: PlaceAnswer(
            found[number].kind,
            found[number].path,
            near.get(number, ""),
            tuple(names.get(number, ())),
        )
        for number, dataset in enumerate(project.datasets)
        if number in found
    }


def checks(project: Project, cluster: Cluster, text: str) -> Iterator[Finding]:
    """What is wrong; `text` is the answer to the question, empty when nobody answered."""
    answers = read_answers(project, text)
    for dataset in project.datasets:
        answer = answers.get(dataset.name)
        if dataset.at:
            yield from _at(dataset, cluster, answer)
        for path in dataset.paths:
            if not os.access(path, os.R_OK):
                yield _not_here(dataset, str(path), cluster, answer)
        if dataset.url and cluster.downloads == "nowhere" and dataset.mode == IN_PLACE:
            yield _not_downloaded(dataset, cluster)


def _at(dataset: Dataset, cluster: Cluster, answer: PlaceAnswer | None) -> Iterator[Finding]:
    where = f'[data.{dataset.name}] at = "{dataset.at}"'
    if data_place(dataset.at, cluster.datasets) is None:
        yield _unknown_dataset(dataset, cluster, where)
    elif answer and answer.kind == "closed":
        yield Finding(
            "data.closed",
            f"{answer.path} on {cluster.name} cannot be read",
            where,
            "you may not read it there, so no job may",
            f"`ls -ld {answer.path}` there shows its owner and group: ask them for access",
        )
    elif answer and not answer.is_there:
        yield Finding(
            "data.absent",
            f"{cluster.name} has no {answer.path} for dataset {dataset.name}",
            where,
            "each job would end before its program starts",
            _correction(answer),
        )


def _unknown_dataset(dataset: Dataset, cluster: Cluster, where: str) -> Finding:
    names = [f"{SITE}{each.name}" for each in cluster.datasets]
    close = get_close_matches(dataset.at, names, n=1)
    fix = f'did you mean `at = "{close[0]}"`?' if close else "write the path of the folder there"
    return Finding(
        "data.absent",
        f"the profile of {cluster.name} lists no dataset `{dataset.at.removeprefix(SITE)}`",
        where,
        f"it lists: {', '.join(names) or 'none'}",
        fix,
    )


def _correction(answer: PlaceAnswer) -> str:
    missing, *below = posixpath.relpath(answer.path, answer.near or "/").split("/")
    close = get_close_matches(missing, answer.names, n=1)
    if close and not below:
        return f'did you mean `at = "{posixpath.join(answer.near, close[0])}"`?'
    there = posixpath.join(answer.near, close[0]) if close else answer.near
    return (
        f"correct `at`: {there} is there{'' if close else _holds(answer.names)}; or write `path`, "
        "for data on this computer, or `url`, for data to download"
    )


def _holds(names: Sequence[str]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return f", with {', '.join(names[:_SHOWN])}{more}" if names else ", and holds nothing"


def _not_here(dataset: Dataset, path: str, cluster: Cluster, answer: PlaceAnswer | None) -> Finding:
    return Finding(
        "data.absent",
        f"dataset {dataset.name} is not on this computer: {path} cannot be read",
        f"[data.{dataset.name}] path",
        "there is nothing to send, and each job would fail",
        path_remedy(dataset.name, cluster, answer),
    )


def path_remedy(name: str, cluster: Cluster, answer: PlaceAnswer | None) -> str:
    """What to write for a `path` that is not on this computer."""
    if answer and answer.is_there:
        return f'it is on {cluster.name}: write `at = "{answer.path}"` instead of `path`'
    table = f"[cluster.{cluster.name}.data.{name}]" if not cluster.is_here else f"[data.{name}]"
    return (
        f"correct `path`; for data that is on the cluster already, write `at` with its path there "
        f"under {table}; `url` downloads it"
    )


def _not_downloaded(dataset: Dataset, cluster: Cluster) -> Finding:
    return Finding(
        "data.download",
        f"dataset {dataset.name} cannot be used in place on {cluster.name}",
        f"[data.{dataset.name}]",
        f"nothing is downloaded on {cluster.name}, so this computer sends a pack",
        f'write `as = "files"` under [data.{dataset.name}], or `as = "shards"`',
    )


def located(
    project: Project, cluster: Cluster, answers: Mapping[str, PlaceAnswer]
) -> dict[str, str]:
    """The path of each dataset that is on the cluster, as its nodes see it."""
    paths = {}
    for dataset in project.datasets:
        place = data_place(dataset.at, cluster.datasets) if dataset.at else None
        if place:
            answer = answers.get(dataset.name)
            paths[dataset.name] = answer.path if answer else place.path
    return paths
