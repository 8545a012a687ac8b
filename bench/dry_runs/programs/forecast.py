"""Trains a transformer that forecasts series of many sensors, in a loop written by hand."""

import argparse
import json

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

SENSORS = 24
HEAD = 32


class Block(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.heads = width // HEAD
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mix = nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(drop), nn.Linear(4 * width, width))

    def forward(self, x, is_row):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts, attn_mask=is_row[:, None, None, :])
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        x = x + self.mix(x.transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, width, depth, drop, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.embed = nn.Linear(SENSORS, width)
        self.blocks = nn.ModuleList(Block(width, drop) for _ in range(depth))
        self.head = nn.Linear(width, SENSORS)

    def forward(self, series, is_row):
        x = self.embed(series)
        for block in self.blocks:
            x = checkpoint(block, x, is_row, use_reentrant=False) if self.checkpointing else block(x, is_row)
        return self.head(x)


def collate(rows):
    """Series of different lengths, padded to the longest, and which entries are theirs."""
    series = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return series, torch.arange(series.shape[1])[None, :] < lengths[:, None]


def make_data(count, longest, seed):
    """Random walks of one half of `longest` to `longest` points."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(longest // 2, longest + 1, (count,), generator=draw)
    return [torch.randn(int(length), SENSORS, generator=draw).cumsum(0) for length in lengths]


def masked_error(model, series, is_row):
    """Mean squared error of each point's forecast by the point before."""
    error = (model(series[:, :-1], is_row[:, :-1]).float() - series[:, 1:]).square().mean(2)
    return (error * is_row[:, 1:]).sum() / is_row[:, 1:].sum()


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--batch", type=int, default=32)
    add("--accumulate", type=int, default=1)
    add("--length", type=int, default=512, help="of the longest series")
    add("--width", type=int, default=256)
    add("--depth", type=int, default=4)
    add("--precision", choices=["fp32", "fp16", "bf16"], default="fp32")
    add("--checkpoint", action="store_true", help="compute layers again in the backward pass")
    add("--lr", type=float, default=3e-4)
    add("--drop", type=float, default=0.1)
    add("--steps", type=int, default=1000)
    return parser.parse_args()


def main():
    options = parse()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Forecaster(options.width, options.depth, options.drop, options.checkpoint).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    low = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(options.precision)
    scaler = torch.amp.GradScaler(device.type, enabled=low is torch.float16)
    rows = make_data(options.batch * options.accumulate * 2, options.length, seed=1)
    loader = torch.utils.data.DataLoader(rows, options.batch, shuffle=True, drop_last=True, collate_fn=collate)
    points = batches = step = 0
    while step < options.steps:
        for series, is_row in loader:
            series, is_row = series.to(device), is_row.to(device)
            with torch.autocast(device.type, dtype=low, enabled=low is not None):
                loss = masked_error(model, series, is_row)
            scaler.scale(loss / options.accumulate).backward()
            points += series.shape[0] * series.shape[1]
            batches += 1
            if batches % options.accumulate == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                step += 1
            if step == options.steps:
                break
    model.eval()
    with torch.no_grad():
        series, is_row = collate(make_data(options.batch, options.length, seed=2))
        error = masked_error(model, series.to(device), is_row.to(device)).item()
    parameters = sum(weights.numel() for weights in model.parameters())
    print(json.dumps({"error": error, "points": points, "flops": 6.0 * parameters * points}))


if __name__ == "__main__":
    main()
