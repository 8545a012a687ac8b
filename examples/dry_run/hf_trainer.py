"""Fine-tunes BERT for classification with Hugging Face's Trainer. Weights and texts are random."""

import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __init__(self, rows, length):
        self.ids = torch.randint(1000, 30000, (rows, length))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "attention_mask": torch.ones_like(self.ids[index]), "labels": index % 2}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    given = parser.parse_args()
    trainer = Trainer(
        BertForSequenceClassification(BertConfig(num_hidden_layers=given.layers)),
        TrainingArguments("out", per_device_train_batch_size=given.batch, num_train_epochs=1, bf16=True,
                          eval_strategy="epoch", save_strategy="no", report_to=[]),
        train_dataset=Texts(10 * given.batch, given.length), eval_dataset=Texts(2 * given.batch, given.length))
    trainer.train()


if __name__ == "__main__":
    main()
