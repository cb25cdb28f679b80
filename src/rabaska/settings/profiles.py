"""Cluster profiles: one TOML file of facts for each place, the user's before the built-in."""

from collections.abc import Iterable
from pathlib import Path as File

from rabaska.domain.clusters import Cluster, Partition, SiteDataset, Tier
from rabaska.errors import SettingsError
from rabaska.settings import document
from rabaska.settings.document import nearest, refusal
from rabaska.settings.profile_files import profile_files
from rabaska.settings.profile_tables import PartitionTable, Profile, SiteDatasetTable, TierTable
from rabaska.settings.validation import checked


def load_cluster(name: str, *, user_profiles: File | None = None) -> Cluster:
    """The cluster called `name`; SettingsError when no profile has that name or it is wrong."""
    files = profile_files(user_profiles)
    if name not in files:
        raise unknown(name, files)
    file = files[name]
    shown = str(file) if file.parent == user_profiles else f"the built-in {file.name}"
    written = document.read(file, shown)
    profile, mistakes = checked(Profile, written.values)
    if profile is None or mistakes:
        raise refusal(mistakes, written)
    return _cluster(name, profile)


def unknown(name: str, known: Iterable[str]) -> SettingsError:
    names = ", ".join(f"`{profile}`" for profile in known)
    near = nearest(name, known) or f"the clusters are {names};"
    adding = f"`rabaska clusters add {name} --host USER@LOGIN-NODE` adds a new one"
    return SettingsError(f"unknown cluster `{name}`", hint=f"{near} {adding}")


def _cluster(name: str, profile: Profile) -> Cluster:
    storage, jobs = profile.storage, profile.jobs
    return Cluster(
        name=name,
        title=profile.title,
        scheduler=profile.scheduler,
        host=profile.reach.host,
        transfer_host=profile.reach.transfer,
        ssh_options=tuple(profile.reach.options),
        store=storage.store,
        share=storage.share,
        local_space=storage.local,
        tiers={name: tier.path for name, tier in storage.tiers.items() if tier.path},
        storage=tuple(_tier(name, tier) for name, tier in storage.tiers.items()),
        quota=storage.quota,
        striped=storage.striped,
        python=profile.python,
        modules=tuple(profile.software.modules),
        wheelhouse=tuple(profile.software.wheelhouse),
        find_wheel=profile.software.find,
        internet=profile.nodes.internet,
        processor=profile.nodes.processor,
        gpus_as_gres=jobs.gpus == "gres",
        mpi=jobs.mpi,
        native=tuple(jobs.native),
        accounts=tuple(profile.accounts),
        partitions=tuple(_partition(name, table) for name, table in profile.partitions.items()),
        names_queue=jobs.names_queue,
        names_model=jobs.names_model,
        names_cores=jobs.names_cores,
        account_form=jobs.account,
        shortest=jobs.shortest,
        usual=jobs.usual,
        most_jobs=jobs.most,
        whole_nodes=jobs.whole_nodes,
        inside_jobs=jobs.inside_jobs,
        submit_from=jobs.submit_from,
        interactive=jobs.interactive,
        forwarding=profile.reach.forwarding,
        advice=tuple(profile.reach.advice),
        status=profile.status,
        retired=profile.retired,
        successors=tuple(profile.successor),
        probe=tuple(profile.probe),
        source=profile.source,
        checked=profile.checked,
        notes=tuple(profile.notes),
        variables=dict(profile.variables),
        datasets=tuple(_dataset(name, table) for name, table in profile.datasets.items()),
        downloads=profile.reach.downloads,
        globus=profile.reach.globus,
        globus_root=profile.reach.globus_root,
    )


def _dataset(name: str, table: SiteDatasetTable) -> SiteDataset:
    return SiteDataset(name=name, **{**table.model_dump(), "size": table.size or 0})


def _partition(name: str, table: PartitionTable) -> Partition:
    return Partition(
        name=name,
        walltime=table.walltime,
        nodes=table.nodes,
        cores=table.cores,
        memory=table.memory or 0,
        gpus=table.gpus,
        gpu_model=table.gpu_model,
        gpu=table.gpu,
        gpu_memory=table.gpu_memory or 0,
        cores_per_gpu=table.cores_per_gpu,
        memory_per_gpu=table.memory_per_gpu or 0,
        shortest=table.shortest,
        most_nodes=table.most_nodes,
        gpu_counts=tuple(table.gpu_counts),
        whole_nodes=table.whole_nodes,
        on_request=table.on_request,
        without_gpus=table.without_gpus,
        local=table.local or 0,
        features=tuple(table.features),
        native=tuple(table.native),
        note=table.note,
        queue=table.queue,
        default=table.default,
    )


def _tier(name: str, tier: TierTable) -> Tier:
    return Tier(
        name=name,
        path=tier.path,
        size=tier.size or 0,
        files=tier.files,
        purge=tier.purge,
        backup=tier.backup,
        scope=tier.scope,
        speed=tier.speed,
        on_nodes=tier.on_nodes,
    )
