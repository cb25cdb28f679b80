"""An agent that needs no data; its README has pictures."""
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
for j in range(10):
    for step in range(5):
        loss = model(torch.zeros(4)).sum()
        loss.backward()
    optimizer.step()
torch.save(model.state_dict(), 'agent.pt')
