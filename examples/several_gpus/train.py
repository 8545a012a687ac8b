"""Trains a small transformer on several GPUs of one host with PyTorch's DistributedDataParallel. torchrun
starts one process, a rank, for each GPU. The script makes its own data, and does not import hpo: it has
arguments, and rank 0 alone prints a measurement after each epoch and writes the model. Without a GPU the
ranks share the processor."""

import argparse
import os

import torch
import torch.distributed

WORDS, LENGTH = 64, 32


def texts(count, seed):
    """Sequences that count up from a random word in random steps; their last word is to be predicted."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(WORDS, (count, 1), generator=generator)
    step = torch.randint(1, 4, (count, 1), generator=generator)
    words = (first + step * torch.arange(LENGTH + 1)) % WORDS
    return torch.utils.data.TensorDataset(words[:, :-1], words[:, -1])


class Predictor(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, width)
        self.places = torch.nn.Parameter(torch.zeros(LENGTH, width))
        layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, WORDS)

    def forward(self, words):
        return self.head(self.body(self.words(words) + self.places)[:, -1])


def train_epoch(model, optimizer, loader, accumulation, device):
    """One pass; the optimizer steps after `accumulation` batches of each rank."""
    for number, (words, target) in enumerate(loader, 1):
        loss = torch.nn.functional.cross_entropy(model(words.to(device)), target.to(device))
        (loss / accumulation).backward()
        if number % accumulation == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()


@torch.no_grad()
def mean_loss(model, data, device):
    """Of all ranks, each with its share of the data."""
    words, target = (part[torch.distributed.get_rank()::torch.distributed.get_world_size()]
                     for part in data.tensors)
    loss = torch.nn.functional.cross_entropy(model(words.to(device)), target.to(device))
    torch.distributed.all_reduce(loss)
    return float(loss) / torch.distributed.get_world_size()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1024, help="of the training data")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()

    on_gpu = torch.cuda.is_available()
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else "cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        Predictor(options.width, options.layers).to(device), device_ids=[device] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    data = texts(options.rows, seed=1)
    sampler = torch.utils.data.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, options.batch_size, sampler=sampler, drop_last=True)
    check = texts(256, seed=2)
    for epoch in range(1, options.epochs + 1):
        sampler.set_epoch(epoch)
        train_epoch(model, optimizer, loader, options.accumulation, device)
        loss = mean_loss(model, check, device)
        if rank == 0:
            print({"loss": loss, "epoch": epoch}, flush=True)
    if rank == 0:
        folder = os.environ.get("HPO_OUTPUT_DIR", ".")
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
