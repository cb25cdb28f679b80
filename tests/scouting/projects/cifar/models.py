import torch.nn as nn


class ResNet18(nn.Module):
    pass
