"""A multilayer perceptron whose batches, of several lengths, are copied on streams of their own."""

import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 96 * 256

    def __getitem__(self, index):
        return torch.zeros(512), torch.tensor(0)


def batches(loader, streams):
    """Copies the next batch on one of `streams` while the last one is used."""
    for number, batch in enumerate(loader):
        stream = streams[number % len(streams)]
        rows = 256 - 24 * (number % 7)
        with torch.cuda.stream(stream):
            data, labels = (part[:rows].to("cuda", non_blocking=True) for part in batch)
            data = data.repeat(1, 8).contiguous()
        torch.cuda.current_stream().wait_stream(stream)
        for tensor in (data, labels):
            tensor.record_stream(torch.cuda.current_stream())
        yield data, labels


layers = [torch.nn.Linear(4096, 4096)]
for _ in range(6):
    layers += [torch.nn.LayerNorm(4096), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(4096, 4096)]
model = torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = torch.utils.data.DataLoader(Rows(), batch_size=256, num_workers=0, pin_memory=True)
side = [torch.cuda.Stream() for _ in range(3)]
for step, (data, labels) in enumerate(batches(loader, side)):
    torch.nn.functional.cross_entropy(model(data), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 9:
        torch.cuda.empty_cache()
    if step == 24:
        break
