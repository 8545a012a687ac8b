"""Trains an image model of timm in mixed precision on random images."""

import argparse

import timm
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    model = timm.create_model(given.model).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    size = model.pretrained_cfg["input_size"]
    for _ in range(100):
        images = torch.randn(given.batch, *size, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (given.batch,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


if __name__ == "__main__":
    main()
