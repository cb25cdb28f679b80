"""Kills, damaged checkpoints and full disks, until every run still equals the undisturbed one.

`make campaign` runs it long, `make campaign KILLS=30` briefly, the suite more briefly still. The
exit code is 0 if all runs were equal; the last line gives the counts.
"""

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.training.exact import carried, clusters, forked

RUN = ["--samples", "1200", "--epochs", "4", "--save-every", "5"]
# On a cluster a job begins in seconds; its steps take longer too, so that they are met.
_SLOWLY = ["--pause", "0.0005"]
_KILLS_OF_A_RUN = 5


def main():
    asked = arguments()
    missing = clusters.no_slurm() if asked.on_slurm else None
    if missing:
        print(f"no kills on Slurm: {missing}", flush=True)
        asked.on_slurm = 0
    if asked.full and os.geteuid() != 0:
        print("no full disks: only root can mount one", flush=True)
        asked.full = 0
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch), random.Random(asked.seed))
        campaign.fork(asked.kills, asked.damages, asked.full)
        campaign.carry(clusters.here, asked.on_here)
        campaign.carry(clusters.slurm, asked.on_slurm)
        print(f"campaign: {campaign.told()}")
        return 0 if campaign.done["equal"] and not campaign.done["different"] else 1


def arguments():
    words = argparse.ArgumentParser(description="Interrupt trainings and compare their ends.")
    words.add_argument("--kills", type=int, default=1000, help="of jobs that are forked")
    words.add_argument("--damages", type=int, help="of checkpoints; 3 for 10 kills")
    words.add_argument("--full", type=int, help="disks; 1 for 10 kills")
    words.add_argument("--on-here", type=int, help="kills more, of runs on `here`; 1 for 20")
    words.add_argument("--on-slurm", type=int, help="kills more, of runs on Slurm; 1 for 30")
    words.add_argument("--seed", default="20261115")
    asked = words.parse_args()
    shares = {"damages": 0.3, "full": 0.1, "on_here": 1 / 20, "on_slurm": 1 / 30}
    for name, share in shares.items():
        if getattr(asked, name) is None:
            setattr(asked, name, int(asked.kills * share))
    return asked


class Campaign:
    def __init__(self, scratch, chance):
        self.scratch = scratch
        self.chance = chance
        self.done = Counter()
        self.expected = self.undisturbed()

    def undisturbed(self):
        folder = self.scratch / "undisturbed"
        forked.ended(forked.start([str(folder), *RUN], self.scratch / "log"))
        return forked.left_by(folder)

    def fork(self, kills, damages, full):
        wanted = {"kills": kills, "damages": damages, "full disks": full}
        runs = forked.Forked(self.scratch, RUN, self.chance, wanted, self.done)
        while runs.wants_more():
            self.compare(runs.one_run())

    def carry(self, cluster, kills):
        """Kill runs on a cluster, `kills` times in all."""
        if not kills:
            return
        with cluster(self.scratch) as there:
            while (left := kills - self.done[there.place, "kills"]) > 0:
                folder = Path(tempfile.mkdtemp(dir=self.scratch))
                run = carried.Carried(there, folder, [*RUN, *_SLOWLY], self.chance, self.done)
                self.compare(run.to_its_end(min(left, _KILLS_OF_A_RUN)))

    def compare(self, found):
        self.done["equal" if found == self.expected else "different"] += 1
        if isinstance(found, str):
            print(found)
        print(self.told(), flush=True)

    def told(self):
        """All counts in one line."""
        places = (forked.PLACE, clusters.Here.place, clusters.Slurm.place)
        killed = "; ".join(f"{place}: {self.victims(place)}" for place in places)
        kills, damages, full = (
            sum(self.done[place, what] for place in places)
            for what in ("kills", "damages", "full disks")
        )
        return (
            f"{kills} kills ({killed}), {damages} damages, {full} full disks where "
            f"{self.done['saves without space']} saves failed; "
            f"{self.done['equal']} runs equal, {self.done['different']} different"
        )

    def victims(self, place):
        """How many of whom were killed there, in words."""
        found = {key[2]: count for key, count in self.done.items()
                 if len(key) == 3 and key[:2] == (place, "kills")}  # fmt: skip
        return ", ".join(f"{victim} {found[victim]}" for victim in sorted(found)) or "none"


if __name__ == "__main__":
    sys.exit(main())
