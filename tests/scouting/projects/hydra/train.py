import hydra
import torch


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    state = torch.load(cfg.resume_from) if cfg.resume_from else {"epoch": 0}
    for epoch in range(state["epoch"], cfg.trainer.max_epochs):
        torch.save({"epoch": epoch}, f"{cfg.trainer.checkpoint_dir}/epoch={epoch}.ckpt")


if __name__ == "__main__":
    main()
