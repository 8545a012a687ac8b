"""Trains an image classifier of timm in mixed precision, with timm's loader, optimizer and schedule."""

import argparse
import contextlib
import json

import timm
import timm.data
import timm.optim
import timm.scheduler
import torch
from PIL import Image

CLASSES = 100


class Photos(torch.utils.data.Dataset):
    """As many images of one size, each of one colour."""

    def __init__(self, count, size):
        self._count, self._size = count, size
        self.transform = None

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if index >= self._count:
            raise IndexError(index)
        image = Image.new("RGB", (self._size, self._size), (index % 256, 128, 255 - index % 256))
        return self.transform(image) if self.transform else image, index % CLASSES


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model", default="resnet50d")
    add("--img-size", type=int, default=224)
    add("-b", "--batch-size", type=int, default=64)
    add("--grad-accum-steps", type=int, default=1)
    add("--amp-dtype", choices=["none", "float16", "bfloat16"], default="none")
    add("--grad-checkpointing", action="store_true")
    add("--channels-last", action="store_true")
    add("--lr", type=float, default=0.01)
    add("--steps", type=int, default=1000, help="optimizer steps")
    return parser.parse_args()


def make_loader(options):
    photos = Photos(options.batch_size * options.grad_accum_steps * (options.steps + 1), options.img_size)
    return timm.data.create_loader(photos, (3, options.img_size, options.img_size), options.batch_size,
                                   is_training=True, no_aug=True, num_workers=0, persistent_workers=False,
                                   device=torch.device("cuda"))


def train(model, options):
    """Images seen, and the last loss."""
    optimizer = timm.optim.create_optimizer_v2(model, opt="momentum", lr=options.lr, weight_decay=2e-5)
    schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=options.steps, t_in_epochs=False)
    dtype = getattr(torch, options.amp_dtype, None)
    autocast = torch.autocast("cuda", dtype=dtype) if dtype else contextlib.nullcontext()
    scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1).cuda()
    seen = step = 0
    for number, (images, labels) in enumerate(make_loader(options), 1):
        if options.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        with autocast:
            loss = criterion(model(images), labels)
        scaler.scale(loss / options.grad_accum_steps).backward()
        seen += len(images)
        if number % options.grad_accum_steps:
            continue
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        step += 1
        schedule.step_update(step)
        if step == options.steps:
            break
    return seen, loss.item()


def main():
    options = parse()
    model = timm.create_model(options.model, num_classes=CLASSES).cuda()
    if options.grad_checkpointing:
        model.set_grad_checkpointing()
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
    seen, loss = train(model, options)
    print(json.dumps({"loss": loss, "images": seen, "megapixels": seen * options.img_size ** 2 / 1e6}))


if __name__ == "__main__":
    main()
