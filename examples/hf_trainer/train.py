"""Trains a text classifier with Hugging Face's Trainer. The model is a small BERT with new weights,
so nothing is downloaded. Three lines belong to hpo; they are marked."""

import json
from dataclasses import dataclass

import torch
from transformers import (BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer,
                          TrainingArguments, set_seed)

import hpo.hf  # hpo: 1


@dataclass
class ScriptArguments:
    train_file: str
    validation_file: str
    width: int = 64
    layers: int = 1
    dropout: float = 0.1
    max_length: int = 32


def read_rows(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Texts(torch.utils.data.Dataset):
    """Words as numbers: 0 pads, 1 starts each text, 2 is any word that `words` does not have."""

    def __init__(self, rows, words, labels, max_length):
        self.items = []
        for row in rows:
            ids = [1] + [words.get(word, 2) for word in row["text"].split()][:max_length - 1]
            padding = [0] * (max_length - len(ids))
            self.items.append({"input_ids": torch.tensor(ids + padding),
                               "attention_mask": torch.tensor([1] * len(ids) + padding),
                               "labels": labels.index(row["label"])})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    parser = HfArgumentParser((ScriptArguments, TrainingArguments))
    script, training = parser.parse_args_into_dataclasses(hpo.hf.command_line())  # hpo: 2
    set_seed(training.seed)
    torch.set_num_threads(1)  # More threads would only wait for each other: the model is small.
    rows, valid_rows = read_rows(script.train_file), read_rows(script.validation_file)
    labels = sorted({row["label"] for row in rows})
    vocabulary = sorted({word for row in rows for word in row["text"].split()})
    words = {word: number for number, word in enumerate(vocabulary, 3)}
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(words) + 3, num_labels=len(labels), hidden_size=script.width,
        num_hidden_layers=script.layers, num_attention_heads=4, intermediate_size=4 * script.width,
        max_position_embeddings=script.max_length, hidden_dropout_prob=script.dropout,
        attention_probs_dropout_prob=script.dropout, initializer_range=0.05))
    trainer = Trainer(
        model=model, args=training, compute_metrics=accuracy,
        train_dataset=Texts(rows, words, labels, script.max_length),
        eval_dataset=Texts(valid_rows, words, labels, script.max_length))
    trainer.add_callback(hpo.hf.HpoCallback(trainer))  # hpo: 3
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
