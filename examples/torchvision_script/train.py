"""Trains a ResNet of torchvision on pictures of shapes. The script draws the pictures and starts from
new weights, so nothing is downloaded. It does not import hpo: it has arguments, prints a line after
each epoch, and writes its model into a folder."""

import argparse
import os

import torch
from torchvision.models.resnet import BasicBlock, ResNet

SHAPES = ("disc", "ring", "square", "cross")
SIZE = 32  # of a picture, in pixels


def draw(shape, generator):
    """A picture [3, SIZE, SIZE] of the shape on black: place, size and colour vary, with noise."""
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    place = 10 + 12 * torch.rand(2, generator=generator)
    radius = 4 + 5 * float(torch.rand(1, generator=generator))
    down, right = (rows - place[0]).abs(), (columns - place[1]).abs()
    distance = (down ** 2 + right ** 2).sqrt()
    inside = {"disc": distance < radius,
              "ring": (distance < radius) & (distance > radius / 2),
              "square": torch.maximum(down, right) < 0.9 * radius,
              "cross": (torch.minimum(down, right) < radius / 3) & (distance < radius)}[shape]
    colour = 0.5 + 0.5 * torch.rand(3, 1, 1, generator=generator)
    return inside * colour + 0.1 * torch.randn(3, SIZE, SIZE, generator=generator)


def pictures(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % len(SHAPES)
    images = torch.stack([draw(SHAPES[label], generator) for label in labels])
    return torch.utils.data.TensorDataset(images, labels)


def train_epoch(model, optimizer, loader, accumulation, device):
    """One pass; the optimizer steps after `accumulation` batches. Returns the mean loss."""
    model.train()
    total = 0.0
    for number, (images, labels) in enumerate(loader, 1):
        scores = model(images.to(device))
        loss = torch.nn.functional.cross_entropy(scores, labels.to(device))
        (loss / accumulation).backward()
        total += loss.item()
        if number % accumulation == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    return total / len(loader)


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    right = sum((model(images.to(device)).argmax(1).cpu() == labels).sum().item()
                for images, labels in loader)
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1, help="in each of four layers; 2: ResNet-18")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", default=".")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # More threads would only wait for each other: the model is small.
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ResNet(BasicBlock, [options.blocks] * 4, num_classes=len(SHAPES)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum,
                                weight_decay=options.weight_decay, nesterov=options.momentum > 0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    loader = torch.utils.data.DataLoader(pictures(800, seed=1), options.batch_size, shuffle=True)
    valid_loader = torch.utils.data.DataLoader(pictures(400, seed=2), 100)
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, optimizer, loader, options.accumulation, device)
        schedule.step()
        print(f"Epoch {epoch}: loss {loss:.4f} accuracy {accuracy(model, valid_loader, device):.4f}",
              flush=True)
    torch.save(model.state_dict(), os.path.join(options.output_dir, "model.pth"))


if __name__ == "__main__":
    main()
