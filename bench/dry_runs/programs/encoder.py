"""A transformer encoder that classifies random tokens, as transformer.py of github.com/itu-rad/GPUMemNet trains one:
two forwards, then whole batches, an epoch's last one, and the next epoch's first.

Arguments: the columns of bench/published/memory_published.csv from batch to samples.
"""

import sys

import torch
from torch import nn

BATCH, LENGTH, WIDTH, LAYERS, HEADS, FEED_FORWARD, VOCABULARY, CLASSES, SAMPLES = map(int, sys.argv[1:])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(1, LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, FEED_FORWARD, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        hidden = self.encoder(self.embedding(ids) + self.positions)
        return self.head(hidden.mean(dim=1))


def train(model, optimizer, rows):
    ids = torch.randint(VOCABULARY, (rows, LENGTH)).cuda()
    labels = torch.randint(CLASSES, (rows,)).cuda()
    optimizer.zero_grad()
    outputs = model(ids)
    loss = nn.functional.cross_entropy(outputs, labels)
    loss.backward()
    optimizer.step()
    loss.item()
    (outputs.argmax(dim=1) == labels).sum().item()


def main():
    with torch.device("meta"):
        model = Classifier()
    model = model.to_empty(device="cuda")
    ids = torch.zeros(BATCH, LENGTH, dtype=torch.long).cuda()
    for _ in range(2):
        model(ids)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    last = SAMPLES % BATCH
    for rows in [BATCH] * 4 + [last] * (last > 0) + [BATCH] * 2:
        train(model, optimizer, rows)


if __name__ == "__main__":
    main()
