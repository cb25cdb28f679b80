from pathlib import Path

import numpy as np
import typer

app = typer.Typer()


@app.command()
def train(
    images: Path,
    output_dir: Path = typer.Option(Path("out"), "--output-dir", "-o"),
    resume: bool = False,
    epochs: int = 10,
):
    first = 0
    if resume:
        first = int(np.load(output_dir / "state.npz")["epoch"])
    for epoch in range(first, epochs):
        np.savez(output_dir / "state", epoch=epoch)


if __name__ == "__main__":
    app()
