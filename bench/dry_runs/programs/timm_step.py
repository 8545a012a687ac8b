"""Trains or runs an image model of timm on random images, as timm's benchmark.py does: mixed precision, the loss and
its derivatives within autocast, SGD with momentum, cuDNN's search for the fastest algorithms.

usage: timm_step.py MODEL SIZE BATCH train|infer nchw|nhwc
"""

import sys

import timm
import timm.optim
import torch

STEPS = 3
torch.backends.cudnn.benchmark = True


def train(model, images):
    model.train()
    loss = torch.nn.CrossEntropyLoss().cuda()
    # As in torch 1.12: one parameter after the other, and derivatives are zeroed, not freed.
    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=1e-4, foreach=False)
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            output = output[0] if isinstance(output, tuple) else output
            target = torch.empty(output.shape[:1], device="cuda", dtype=torch.long).random_(model.num_classes)
            loss(output, target).backward()
        optimizer.step()
        torch.cuda.synchronize()


def infer(model, images):
    model.eval()
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.float16):
            model(images)
        torch.cuda.synchronize()


def main():
    name, size, batch, work, layout = sys.argv[1:]
    size, batch = int(size), int(batch)
    model = timm.create_model(name, in_chans=3, drop_rate=0.0)
    layout = torch.channels_last if layout == "nhwc" else None
    model.to(device="cuda", dtype=torch.float32, memory_format=layout)
    with torch.set_grad_enabled(work == "train"):
        images = torch.randn(batch, 3, size, size, device="cuda")
        if layout is not None:
            images = images.contiguous(memory_format=layout)
        (train if work == "train" else infer)(model, images)


main()
