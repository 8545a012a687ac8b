"""BERT-base under Hugging Face's Trainer: 32 rows of 128 tokens. Arguments: fp32, fp16 or bf16."""

import sys
import tempfile

import torch
import transformers


class Rows(torch.utils.data.Dataset):
    def __init__(self, number):
        self._number = number

    def __len__(self):
        return self._number

    def __getitem__(self, index):
        tokens = torch.full((128,), index % 1000, dtype=torch.long)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": index % 2}


precision = sys.argv[1] if len(sys.argv) > 1 else "fp32"
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=32, per_device_eval_batch_size=64, max_steps=4,
        eval_strategy="steps", eval_steps=2, save_strategy="no", report_to=[], disable_tqdm=True,
        fp16=precision == "fp16", bf16=precision == "bf16")
    model = transformers.BertForSequenceClassification(transformers.BertConfig())
    transformers.Trainer(model=model, args=arguments, train_dataset=Rows(128), eval_dataset=Rows(96)).train()
