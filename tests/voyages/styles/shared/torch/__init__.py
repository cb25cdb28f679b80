"""As much of PyTorch as these programs use; the real one takes longer to import than they run."""
import pickle


def save(content, f):
    if hasattr(f, "write"):
        pickle.dump(content, f)
        return
    with open(f, "wb") as stream:
        pickle.dump(content, stream)


def load(f, map_location=None):
    if hasattr(f, "read"):
        return pickle.load(f)
    with open(f, "rb") as stream:
        return pickle.load(stream)


class Linear:
    def __init__(self):
        self.weight = 0.0

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        self.weight = state["weight"]


class SGD:
    def __init__(self, model):
        self.model, self.momentum = model, 0.0

    def step(self):
        self.momentum = 0.9 * self.momentum + 0.1
        self.model.weight += self.momentum

    def state_dict(self):
        return {"momentum": self.momentum}

    def load_state_dict(self, state):
        self.momentum = state["momentum"]
