"""A training program that knows nothing of dry runs. Says in the file RUNS how it ran, for the test."""

import argparse
import os

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, required=True)
    layers = parser.parse_args().layers
    with open(os.environ["RUNS"], "a", encoding="utf-8") as file:
        file.write(f"{'dry' if 'HPO_DRY_RUN_RECORD' in os.environ else 'gpu'} {layers}\n")
    with open(os.path.join(os.environ["HPO_OUTPUT_DIR"], "model"), "w", encoding="utf-8") as file:
        file.write("x")
    # 256 MiB of weights in each layer, as much of gradients, twice as much of the optimizer: 1 GiB.
    model = torch.nn.Sequential(*(torch.nn.Linear(8192, 8192, device="cuda") for _ in range(layers)))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        model(torch.zeros(8, 8192, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print({"loss": 1.0 / layers})


if __name__ == "__main__":
    main()
