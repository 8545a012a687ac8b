"""A program that knows nothing of dry runs: trains with a data loader's workers and evaluates now and then."""

import argparse
import importlib.util
import os

assert importlib.util.find_spec("torch") is not None  # as transformers does before it imports torch

import torch  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batches", type=int, default=4, help="of an epoch")
    given = parser.parse_args()
    size = given.batches * given.batch
    data = torch.utils.data.TensorDataset(torch.zeros(size, 64), torch.zeros(size, dtype=torch.long))
    loader = torch.utils.data.DataLoader(data, given.batch, num_workers=given.workers, pin_memory=True)
    model = torch.nn.Sequential()
    model.add_module("stem", torch.nn.Linear(64, given.width))
    model.add_module("layers", torch.nn.Sequential(*(torch.nn.Sequential(
        torch.nn.Linear(given.width, given.width), torch.nn.GELU()) for _ in range(3))))
    model.add_module("head", torch.nn.Linear(given.width, 10))
    model.to(given.device)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(given.epochs):
        for x, y in loader:
            x, y = x.to(given.device, non_blocking=True), y.to(given.device, non_blocking=True)
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        if os.environ.get("PEAKS") and epoch == 0:
            print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                model(torch.zeros(2 * given.batch, 64, device=given.device))
        model.train()


if __name__ == "__main__":
    main()
