"""Functions about a cluster: its profile, its storage, and what rabaska keeps there."""

from collections.abc import Sequence
from pathlib import Path

from rabaska.domain.clusters import Cluster, Observations, ProfileFact
from rabaska.journeys import clean as _clean
from rabaska.journeys import clusters as _clusters
from rabaska.journeys import edit_cluster as _edit
from rabaska.journeys import storage as _storage
from rabaska.journeys.clean import Cleaning
from rabaska.journeys.clusters import Added, Removed
from rabaska.journeys.storage import Storage
from rabaska.records.home import home, made_home
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import default_cluster
from rabaska.steps.connect import observations_of


class Clusters:
    """`rabaska clusters …`: list, show, add, check, edit, remove; called itself, it lists them."""

    def __call__(self) -> Sequence[Cluster]:
        return self.list()

    def list(self) -> Sequence[Cluster]:
        """Every cluster that `on` accepts."""
        profiles = home().profiles
        return [load_cluster(name, user_profiles=profiles) for name in names(profiles)]

    def show(self, name: str) -> tuple[Cluster, Observations | None]:
        """A cluster's profile, and what was found when the cluster was last probed."""
        profile = load_cluster(name, user_profiles=home().profiles)
        return profile, observations_of(name, home())

    def add(
        self,
        name: str,
        *,
        host: str,
        ssh_options: Sequence[str] = (),
        probe: bool = False,
        account: str = "",
        force: bool = False,
    ) -> Added:
        """Probe a cluster over one connection, and write a profile that you can edit."""
        return _clusters.add(
            name, host, made_home(), options=tuple(ssh_options), account=account, probe=probe,
            force=force,
        )  # fmt: skip

    def check(self, name: str, *, probe: bool = False, account: str = "") -> Sequence[ProfileFact]:
        """Compare a profile with its cluster, line by line."""
        return _clusters.check(name, made_home(), probe=probe, account=account)

    def remove(self, name: str, *, force: bool = False) -> Removed:
        """Delete a profile of yours; refused while runs there are active, unless `force`."""
        return _clusters.remove(name, home(), force=force)

    def edit(self, name: str) -> Path:
        """Open a profile in $VISUAL or $EDITOR; replaced only if what comes back is valid."""
        with _edit.Copy(name, made_home()) as copy:
            copy.open_editor()
            return copy.accept()


clusters = Clusters()


def storage(*, on: str = "") -> Storage:
    """A cluster's storage, what rabaska keeps there, and when the site deletes it."""
    return _storage.storage(_cluster(on), made_home())


def clean(*, on: str = "", yes: bool = False) -> Cleaning:
    """What no run needs any more; it is deleted only with `yes`."""
    on = _cluster(on)
    return _clean.clean(on, made_home()) if yes else _clean.preview(on, made_home())


def _cluster(on: str) -> str:
    return on or default_cluster(Path.cwd())
