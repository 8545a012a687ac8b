"""Small training programs of many kinds, which know nothing of dry runs. usage: zoo.py NAME

Each builds its model from a configuration, so nothing is downloaded.
"""

import os
import sys

import torch
from torch import nn

STEPS = 20


def train(model, make_batch, optimizer=None, dtype=None, steps=STEPS):
    """A plain loop: `make_batch()` is what the model is called with, and it returns a loss."""
    optimizer = optimizer or torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(steps):
        batch = make_batch()
        with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
            loss = model(**batch) if isinstance(batch, dict) else model(*batch)
        loss = getattr(loss, "loss", loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


class Classifier(nn.Module):
    """A model of images with its loss."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, images, labels):
        out = self.body(images)
        out = out["out"].mean((2, 3)) if isinstance(out, dict) else out
        return nn.functional.cross_entropy(out, labels)


def images(count=8, size=224, layout=torch.contiguous_format):
    return lambda: (torch.randn(count, 3, size, size, device="cuda").to(memory_format=layout),
                    torch.randint(10, (count,), device="cuda"))


def tokens(vocabulary, rows=4, length=256):
    def batch():
        ids = torch.randint(vocabulary, (rows, length), device="cuda")
        return {"input_ids": ids, "labels": ids}
    return batch


def llama(**changes):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(**{"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
                            "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 8000, **changes})
    return LlamaForCausalLM(config).cuda()


def mlp():
    body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Dropout(0.1),
                         nn.Linear(4096, 10))
    train(Classifier(body).cuda(), images(256, 32))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        ids = torch.randint(5, 30000, (128,))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": index % 2}


def trainer(precision):
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=16, max_steps=STEPS, bf16=precision == "bf16", fp16=precision == "fp16",
        report_to=[], save_strategy="no", dataloader_num_workers=2 if precision == "bf16" else 0,
        eval_strategy="steps", eval_steps=4)
    Trainer(BertForSequenceClassification(BertConfig(num_hidden_layers=4)), arguments, train_dataset=Rows(),
            eval_dataset=torch.utils.data.Subset(Rows(), range(32))).train()


def t5_trainer():
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(num_layers=3, decoder_start_token_id=0)).cuda()
    train(model, tokens(32000, 8, 128))


def gpt2_checkpointing():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=6)).cuda()
    model.gradient_checkpointing_enable()
    train(model, tokens(50000, 4, 1024), dtype=torch.bfloat16)


def llama_bf16():
    model = llama().to(torch.bfloat16)
    train(model, tokens(8000), torch.optim.AdamW(model.parameters(), fused=True))


def peft(kind):
    import peft as library
    configs = {"lora": lambda: library.LoraConfig(r=16, target_modules=["q_proj", "v_proj"]),
               "dora": lambda: library.LoraConfig(r=8, use_dora=True, target_modules=["q_proj", "v_proj"]),
               "ia3": lambda: library.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
               "prefix": lambda: library.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=20),
               "adalora": lambda: library.AdaLoraConfig(init_r=12, target_r=8, total_step=STEPS,
                                                        target_modules=["q_proj", "v_proj"])}
    train(library.get_peft_model(llama(), configs[kind]()), tokens(8000))


def trl_sft():
    import datasets
    import tokenizers
    import trl
    import transformers
    words = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i + 2 for i in range(500)}}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    texts = datasets.Dataset.from_dict({"text": [" ".join(f"w{(i * j) % 500}" for j in range(64)) for i in range(256)]})
    trl.SFTTrainer(llama(vocab_size=512), trl.SFTConfig("out", per_device_train_batch_size=8, max_steps=STEPS,
                                                        report_to=[], save_strategy="no", max_length=64, bf16=True),
                   train_dataset=texts, processing_class=fast).train()


def timm(name, dtype=torch.float16):
    import timm as library
    model = Classifier(library.create_model(name, num_classes=10)).cuda().to(memory_format=torch.channels_last)
    train(model, images(layout=torch.channels_last), torch.optim.SGD(model.parameters(), 0.1, 0.9), dtype)


def resnet():
    import torchvision
    torch.backends.cudnn.benchmark = True
    train(Classifier(torchvision.models.resnet50(num_classes=10)).cuda(), images())


def segmentation():
    import torchvision
    body = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=10)
    train(Classifier(body).cuda(), images(4))


def detection():
    import torchvision
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None,
                                                                           num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        pictures = [torch.rand(3, 320, 320, device="cuda") for _ in range(2)]
        targets = [{"boxes": torch.tensor([[10.0, 10, 200, 200], [30, 30, 90, 120]], device="cuda"),
                    "labels": torch.tensor([1, 2], device="cuda")} for _ in range(2)]
        loss = sum(model(pictures, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(5000, 256)
        self.layers = kind(256, 512, 2, batch_first=True, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(1024, 10)

    def forward(self, ids, lengths, labels):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        return nn.functional.cross_entropy(self.head(out.mean(1)), labels)


def recurrent(kind):
    train(Recurrent(kind).cuda(), lambda: (torch.randint(5000, (64, 100), device="cuda"), torch.randint(20, 101, (64,)),
                                           torch.randint(10, (64,), device="cuda")))


def generate():
    model = llama().eval()
    for _ in range(2):
        ids = model.generate(torch.randint(5, 8000, (4, 32), device="cuda"), max_new_tokens=24, do_sample=True)
        print(ids.shape)


def moe():
    from transformers import MixtralConfig, MixtralForCausalLM
    config = MixtralConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=8,
                           num_key_value_heads=4, vocab_size=8000, num_local_experts=4)
    train(MixtralForCausalLM(config).cuda(), tokens(8000))


def compiled(mode):
    body = nn.Sequential(nn.Flatten(), nn.Linear(3072, 1024), nn.GELU(), nn.Linear(1024, 10))
    train(torch.compile(Classifier(body).cuda(), mode=mode), images(128, 32))


def cuda_graph():
    model = nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    data, stream = torch.randn(256, 1024, device="cuda"), torch.cuda.Stream()

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()

    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(STEPS):
        graph.replay()


def distributed(kind):
    import torch.distributed as dist
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = llama()
    if kind == "ddp":
        wrapped = nn.parallel.DistributedDataParallel(model)
    elif kind == "fsdp":
        wrapped = torch.distributed.fsdp.FullyShardedDataParallel(model, use_orig_params=True)
    else:
        for layer in model.model.layers:
            torch.distributed.fsdp.fully_shard(layer)
        wrapped = torch.distributed.fsdp.fully_shard(model)
    train(wrapped, tokens(8000))
    dist.destroy_process_group()


def accelerate():
    import accelerate as library
    from transformers import BertConfig, BertForSequenceClassification
    helper = library.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=2))
    model, optimizer, loader = helper.prepare(model, torch.optim.AdamW(model.parameters()),
                                              torch.utils.data.DataLoader(Rows(), 8))
    for batch in loader:
        with helper.accumulate(model):
            helper.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()


def lightning():
    import lightning as library

    class Module(library.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10))

        def training_step(self, batch, _index):
            return nn.functional.cross_entropy(self.body(batch[0]), batch[1])

        def validation_step(self, batch, _index):
            self.log("loss", nn.functional.cross_entropy(self.body(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(640, 512), torch.randint(10, (640,)))
    loader = torch.utils.data.DataLoader(data, 64)
    library.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, precision="16-mixed",
                    enable_progress_bar=False).fit(Module(), loader, loader)


PROGRAMS = {
    "mlp": mlp, "trainer_fp32": lambda: trainer("fp32"), "trainer_fp16": lambda: trainer("fp16"),
    "trainer_bf16": lambda: trainer("bf16"), "t5": t5_trainer, "gpt2_checkpointing": gpt2_checkpointing,
    "llama_bf16": llama_bf16, "lora": lambda: peft("lora"), "dora": lambda: peft("dora"), "ia3": lambda: peft("ia3"),
    "prefix_tuning": lambda: peft("prefix"), "adalora": lambda: peft("adalora"), "trl_sft": trl_sft,
    "timm_resnet50": lambda: timm("resnet50"), "timm_vit": lambda: timm("vit_small_patch16_224"),
    "timm_convnext": lambda: timm("convnext_tiny", torch.bfloat16), "torchvision_resnet50": resnet,
    "segmentation": segmentation, "detection": detection, "lstm": lambda: recurrent(nn.LSTM),
    "gru": lambda: recurrent(nn.GRU), "generate": generate, "moe": moe, "compile": lambda: compiled("default"),
    "compile_reduce_overhead": lambda: compiled("reduce-overhead"), "cuda_graph": cuda_graph,
    "ddp": lambda: distributed("ddp"), "fsdp": lambda: distributed("fsdp"), "fsdp2": lambda: distributed("fsdp2"),
    "accelerate": accelerate, "lightning": lightning,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
