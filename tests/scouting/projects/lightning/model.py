import pytorch_lightning as pl


class LitModel(pl.LightningModule):
    pass
