"""What trackers leave next to the code is kept: MLflow's file store, archives of Comet."""

from pathlib import Path

from rabaska.node.job.results import keep_new

LEFT = (
    "mlruns/0/meta.yaml",
    "mlruns/0/4f2a/metrics/loss",
    "mlruns/0/4f2a/artifacts/model/MLmodel",
    "mlruns/.trash/x",
    "mlflow.db",
    ".cometml-runs/8f31.zip",
    "wandb/offline-run-20261118_1200-abc/run-abc.wandb",
    "wandb/offline-run-20261118_1200-abc/files/output.log",
    "aim/.aim/meta",
)


def test_the_files_of_trackers_are_kept(tmp_path: Path) -> None:
    code, carried = tmp_path / "code", tmp_path / "kept"
    (carried / "output").mkdir(parents=True)
    for name in LEFT:
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(name)

    keep_new(str(code), str(carried), {})

    assert [name for name in LEFT if not (carried / "output" / name).is_file()] == []
