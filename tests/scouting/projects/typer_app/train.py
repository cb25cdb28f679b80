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
    for epoch in range(epochs):
        np.savez(output_dir / "state", epoch=epoch)


if __name__ == "__main__":
    app()
