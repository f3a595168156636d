"""
Positional encodings for a graph network
========================================

Message passing does not see the shape around a node. The local transform does: :class:`~eulerscan.convert.AddLocalECT` is a
transform of PyG that adds the Euler characteristic transform of each node's neighborhood to its features (LEAP). Here a small
network classifies line drawings of letters with and without it.
"""

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_add_pool

import eulerscan as es
from eulerscan import plot
from eulerscan.convert import AddLocalECT, to_pyg

# %%
# Letters as PyG graphs with positions. The encoding of a node is the transform of its neighbors within two hops.

letters = es.datasets.load("letter-low")
graphs = to_pyg(letters.shapes).to_data_list()
encode = AddLocalECT(num_directions=8, num_thresholds=8, hops=2, scale=16.0)
for number, graph in enumerate(graphs):
    graphs[number] = graph = encode(graph)
    graph.y = letters.labels[number : number + 1]
print(graphs[0])

# %%
# The network is the same with both features: a graph convolution, the sum over all nodes, a linear layer.


class Network(torch.nn.Module):
    """A network on the features that ``features(batch)`` gives."""

    def __init__(self, features, width):
        super().__init__()
        self.features = features
        self.inside, self.convolution = torch.nn.Linear(width, 64), GCNConv(64, 64)
        self.head = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 15))

    def forward(self, batch):
        hidden = self.inside(self.features(batch)).relu()
        hidden = self.convolution(hidden, batch.edge_index).relu() + hidden
        return self.head(global_add_pool(hidden, batch.batch))


def accuracy(features, width, epochs=12):
    """Test accuracy in percent after every epoch."""
    torch.manual_seed(0)
    model = Network(features, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    train, test = ([graphs[i] for i in letters.indices(split)] for split in ("train", "test"))
    history = []
    for _ in range(epochs):
        for batch in DataLoader(train, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        with torch.no_grad():
            batch = next(iter(DataLoader(test, batch_size=len(test))))
            history.append(100 * float((model(batch).argmax(dim=1) == batch.y).float().mean()))
    return history


curves = {
    "degree": accuracy(lambda b: torch.bincount(b.edge_index[0], minlength=b.num_nodes)[:, None].float(), 1),
    "local transform": accuracy(lambda b: b.local_ect.flatten(1).float(), 64),
    "position": accuracy(lambda b: b.pos, 2),
    "position and local transform": accuracy(lambda b: torch.cat([b.pos, b.local_ect.flatten(1).float()], dim=1), 66),
}
for name, history in curves.items():
    print(f"{name}: {history[-1]:.1f} %")

# %%
# Test accuracy over the epochs:

picture = plot.figure(8, 3.6)
ax = picture.add_subplot()
for name, history in curves.items():
    ax.plot(range(1, len(history) + 1), history, marker=".", label=name)
ax.set(xlabel="epoch", ylabel="test accuracy in %")
ax.legend(title="features of the nodes", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plot.save(picture, "encodings.png", dpi=120)
