import torch
print "Epoch: %d" % 1
torch.save({}, "model.pt")
