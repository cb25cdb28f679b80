import fire
import torch


def run(data_path, save_path="out/model.pt", resume_from=None, lr=1e-3):
    first = 0
    if resume_from:
        first = torch.load(resume_from)["step"]
    for step in range(first, 100):
        torch.save({"data": data_path, "step": step}, save_path)


if __name__ == "__main__":
    fire.Fire(run)
