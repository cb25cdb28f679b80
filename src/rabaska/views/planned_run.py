"""A run as it is planned: each fact with its label."""

from rabaska.domain.amounts import say_duration
from rabaska.node.login.submit_job import MARK
from rabaska.node.record.chain_rule import limit
from rabaska.node.record.plan import CHANGED, Plan, StagedData
from rabaska.remote.place import quoted
from rabaska.steps.plan_run import PlannedRun
from rabaska.views.runs import labels_text


def planned_facts(planned: PlannedRun) -> dict[str, str]:
    """What is known of it; what is empty is left out."""
    plan, spec = planned.plan, planned.spec
    facts = {
        "run": plan.run,
        "on": f"{plan.origin.cluster} ({plan.origin.scheduler})",
        "command": " ".join([*plan.command, *plan.resume]),
        "data": ", ".join(map(_data, plan.datasets)) or "none",
        "staged into": _staged_into(plan),
        "code": f"snapshot {plan.code[:12]}",
        "commit": _commit(plan),
        "note": labels_text(plan.origin.note, plan.origin.tags),
        "made like": plan.origin.like,
        "jobs": _jobs(planned),
        "save signal": f"{plan.signal}, {say_duration(spec.warn_before)} before the limit",
        "GPUs": f"{spec.resources.gpus} {spec.resources.gpu_model}".strip(),
        "checkpoints": " ".join(plan.patterns),
        "secrets": " ".join(plan.secrets),
        "kept": " ".join(plan.keep),
        "submitted by": quoted(_without_mark(planned.submit)),
        "results": f"{spec.folder.removesuffix('/logs')}/output, even if the run fails",
    }
    return {label: text for label, text in facts.items() if text}


def _data(dataset: StagedData) -> str:
    if not dataset.pack:
        return f"{dataset.name} in place, {dataset.path}"
    return f"{dataset.pack} as {dataset.mode}"


def _jobs(planned: PlannedRun) -> str:
    """How many are queued, and how many there may be."""
    jobs = planned.spec.jobs
    most = limit(planned.plan, []) if planned.plan.growth.words else jobs
    more = f", and more as needed, {most} at most" if most > jobs else ""
    return f"up to {jobs} of {say_duration(planned.spec.resources.walltime)}{more}"


def _commit(plan: Plan) -> str:
    """The commit of the code, and whether the code is exactly that."""
    origin = plan.origin
    if not origin.commit:
        return ""
    changed = "with changes that are not committed" if origin.tree == CHANGED else "unchanged"
    return f"{origin.commit}, {changed}"


def _staged_into(plan: Plan) -> str:
    """The tiers of a node in the order in which they are tried."""
    local = plan.request.local or "a temporary folder of the node"
    if not any(dataset.pack for dataset in plan.datasets):
        return ""
    return f"{plan.nearby.memory} if it fits, else {local}" if plan.nearby.memory else local


def _without_mark(words: tuple[str, ...]) -> list[str]:
    """The command as a person would type it: the mark by which we find a lost job is ours."""
    plain = [word for word in words if MARK not in word]
    return [word for word in plain if word != "--mark"]
