"""GPT-2, 8 rows of 1024 tokens, bfloat16 autocast, gradient checkpointing, copies from pinned memory."""

import torch
import transformers

model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
model.gradient_checkpointing_enable()
model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    tokens = torch.zeros(8, 1024, dtype=torch.long).pin_memory().to("cuda", non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.empty_cache()
