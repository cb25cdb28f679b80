"""A training that waits for its data: too few workers, decoding, storage, workers started again."""

import math

from rabaska.domain import command_options
from rabaska.domain.amounts import say_size
from rabaska.domain.run_measures import Bottleneck, Measures, counted, times_faster

_WAITING = 0.20  # shares of the time that are worth a change
_STARTING = 0.10
_BUSY_WORKER = 0.6  # of a core
_STARVED = 0.2  # likewise
_BLOCKED = 0.1  # of the workers


def data(measured: Measures) -> Bottleneck | None:
    if measured.waiting < _WAITING:
        return None
    if measured.starting >= max(_STARTING, measured.waiting / 2):
        return _restarted(measured)
    if not measured.workers:
        return _without_workers(measured)
    workers = max(1, measured.workers)
    busy = measured.cores_of_workers / workers
    # A worker that waits for a core has no time to wait for storage.
    wanted = busy + measured.workers_lacked / workers
    # One that lacks a core for longer than it has one shows nothing of the storage.
    starved = measured.workers_lacked > max(measured.cores_of_workers, _STARVED * workers)
    stuck = measured.workers_blocked / workers >= _BLOCKED
    if wanted < _BUSY_WORKER and measured.cores_used is not None and (stuck or not starved):
        return _storage(measured, busy)
    return _too_few(measured, wanted)


def _restarted(measured: Measures) -> Bottleneck:
    return Bottleneck(
        "restarted workers",
        "The workers that load data are started again for every epoch.",
        f"{measured.starting:.0%} of the time is spent on starting them",
        "`persistent_workers=True` in the program's DataLoader",
        measured.starting,
        times_faster(measured.starting),
    )


def _without_workers(measured: Measures) -> Bottleneck:
    """One process loads and computes in turns: workers do it at the same time."""
    computing = max(1.0 - measured.waiting, 0.01)
    wanted = max(2, math.ceil(measured.waiting / computing) + 1)
    most = measured.cores or wanted
    own = measured.fetching / max(measured.waiting, 0.01)
    doing = f", {own:.0%} of that with the processor busy" if measured.fetching else ""
    evidence = f"{measured.waiting:.0%} of the time it waits for data{doing}; it has no workers"
    if measured.cores == 1:
        return _decoding(measured, evidence, wanted)
    workers = min(wanted, most)
    # What decodes shares the cores with what computes.
    together = measured.waiting / (min(workers, max(1, most - 1)) if own > 0.5 else workers)
    return Bottleneck(
        "too few workers",
        "The program loads its data itself, and computes nothing meanwhile.",
        evidence,
        _workers_line(measured, workers),
        measured.waiting,
        1.0 / max(computing, together),
    )


def _too_few(measured: Measures, busy: float) -> Bottleneck:
    workers = measured.workers or 1
    computing = max(1.0 - measured.waiting, 0.01)
    wanted = math.ceil(workers / computing)
    evidence = (
        f"{measured.waiting:.0%} of the time it waits for data; "
        f"its {counted(workers, 'worker')} would use {busy:.0%} of a core each"
    )
    # The program itself needs one too, as far as it does not wait.
    most = max(1, measured.cores - math.ceil(computing * measured.processes - 0.5))
    if measured.cores and most <= workers:
        return _decoding(measured, evidence, wanted)
    chosen = min(wanted, most) if measured.cores else wanted
    return Bottleneck(
        "too few workers",
        "More workers would load the data as fast as the program can take it.",
        evidence + (f"; it has {counted(measured.cores, 'core')}" if measured.cores else ""),
        _workers_line(measured, chosen),
        measured.waiting,
        1.0 / max(computing, workers / chosen),
    )


def _decoding(measured: Measures, evidence: str, wanted: int) -> Bottleneck:
    cores = wanted + 1
    cored = f"; it has {counted(measured.cores, 'core')}, all of them busy"
    also = command_options.changed(measured.command, command_options.WORKERS, to=wanted)
    also = also or f"`num_workers={wanted}` in the program's DataLoader"
    computing = max(1.0 - measured.waiting, 0.01)
    return Bottleneck(
        "decoding",
        "To decode the data takes more processor time than the job has.",
        evidence + cored,
        f"`cores = {cores}` in [resources], and {also}; or store the data as it is needed: "
        "decoded, or smaller",
        measured.waiting,
        1.0 / max(computing, (measured.workers or 1) / wanted),
    )


def _storage(measured: Measures, busy: float) -> Bottleneck:
    workers = measured.workers or 1
    read = f", {say_size(int(measured.bytes_read))}/s" if measured.bytes_read >= 1e5 else ""
    stuck = ""
    if measured.workers_blocked >= _BLOCKED:
        stuck = f"; {measured.workers_blocked / workers:.0%} of them wait for a read at any moment"
    return Bottleneck(
        "storage",
        "The workers wait for the storage that the data is read from.",
        f"{measured.waiting:.0%} of the time it waits for data; its {counted(workers, 'worker')} "
        f"use only {busy:.0%} of a core each{read}{stuck}",
        '`as = "files"` in [data.NAME] copies the data to the node\'s own disk first; '
        "a data folder that the command names by its path is not staged: name it `{data}`",
        measured.waiting,
        None,
    )


def _workers_line(measured: Measures, workers: int) -> str:
    found = command_options.changed(measured.command, command_options.WORKERS, to=workers)
    return found or f"`num_workers={workers}` in the program's DataLoader"
