import fire
import torch


def run(data_path, save_path="out/model.pt", resume_from=None, lr=1e-3):
    if resume_from:
        torch.load(resume_from)
    torch.save({"data": data_path}, save_path)


if __name__ == "__main__":
    fire.Fire(run)
