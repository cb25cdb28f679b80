"""The text of Slurm's configuration files for one site."""

from .clock import stretched
from .site import Node, Partition, Site


def slurm_conf(site: Site, *, cgroups: bool) -> str:
    parts = [_names(site), _timing(site), _behaviour(cgroups=cgroups), _accounting(site)]
    parts += [_node_line(site, node) for node in site.nodes]
    parts += [_partition_line(partition) for partition in site.partitions]
    return "\n".join(parts) + "\n"


def gres_conf(site: Site) -> str:
    lines = ["AutoDetect=off"]
    for node in site.nodes:
        if node.gpus:
            devices = f"/dev/nvidia[0-{node.gpus - 1}]"
            lines.append(f"NodeName={node.name} Name=gpu Type={node.gpu} File={devices}")
    return "\n".join(lines) + "\n"


def cgroup_conf() -> str:
    return "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainRAMSpace=yes\n"


def slurmdbd_conf() -> str:
    return """\
DbdHost=control
SlurmUser=root
AuthType=auth/munge
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
PidFile=/run/slurmdbd.pid
"""


def hosts_file(site: Site) -> str:
    lines = [f"{site.address(host)} {host}" for host in site.hosts]
    return "\n".join(["127.0.0.1 localhost", *lines]) + "\n"


def _names(site: Site) -> str:
    return f"""\
ClusterName=sdumont
SlurmctldHost=control({site.address("control")})
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SrunPortRange=60001-60999
GresTypes=gpu
MpiDefault=none"""


def _timing(site: Site) -> str:
    # A clock that runs too fast sees honest nodes as late, so what the controller is
    # willing to wait for grows with the warp. A real lost node is noticed in 5 s otherwise.
    patience = 5 if site.warp == 1 else stretched(60, site.warp)
    return f"""\
AuthInfo=cred_expire=5
SlurmctldTimeout={stretched(30, site.warp)}
SlurmdTimeout={patience}
MessageTimeout={5 if site.warp == 1 else 100}
BatchStartTimeout={stretched(10, site.warp)}
MinJobAge={stretched(300, site.warp)}
InactiveLimit=0
KillWait=3
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0,sched_min_interval=0,nohold_on_prolog_fail"""


def _behaviour(*, cgroups: bool) -> str:
    tracking = "cgroup" if cgroups else "linuxproc"
    return f"""\
ProctrackType=proctrack/{tracking}
TaskPlugin=task/{"cgroup" if cgroups else "none"}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
EnforcePartLimits=ALL
ReturnToService=2
SlurmdParameters=config_overrides
DefMemPerCPU=100
Prolog=/usr/local/lib/lab/prolog
Epilog=/usr/local/lib/lab/epilog
TaskProlog=/usr/local/lib/lab/task_prolog
PrologFlags=Alloc
MailProg=/usr/local/lib/lab/mail"""


def _accounting(site: Site) -> str:
    if not site.accounting:
        return (
            "AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none"
        )
    return """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=control
AccountingStorageEnforce=associations,limits
AccountingStorageTRES=gres/gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1"""


def _node_line(site: Site, node: Node) -> str:
    gpus = f" Gres=gpu:{node.gpu}:{node.gpus} Feature={node.gpu}" if node.gpus else ""
    where = f"NodeName={node.name} NodeHostname={node.name} NodeAddr={site.address(node.name)}"
    return f"{where} CPUs={node.cores} RealMemory={node.memory}{gpus}"


def _partition_line(partition: Partition) -> str:
    nodes = ",".join(partition.nodes)
    line = f"PartitionName={partition.name} Nodes={nodes} MaxTime={partition.walltime} State=UP"
    return f"{line} {partition.options}".rstrip()
