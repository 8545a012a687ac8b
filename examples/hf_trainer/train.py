"""A script with Hugging Face's Trainer, as people have it: which of two letters is more frequent in
a text? Data and weights are made here, so that it runs without a network. Three lines are hpo's:
they are marked."""

import random
from dataclasses import dataclass

import torch
from transformers import (BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer,
                          TrainingArguments, set_seed)

import hpo.hf  # hpo: 1


@dataclass
class ModelArguments:
    width: int = 64
    layers: int = 2
    length: int = 64
    rows: int = 512


class Letters(torch.utils.data.Dataset):
    """Texts over five letters; label 1 where there are more b than a."""

    def __init__(self, rows, length, seed):
        made = random.Random(seed)
        texts = [made.choices("abcde", k=length) for _ in range(rows)]
        self.rows = [{"input_ids": torch.tensor([ord(letter) - ord("a") for letter in text]),
                      "labels": int(text.count("b") > text.count("a"))} for text in texts]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses(hpo.hf.command_line())  # hpo: 2
    set_seed(training_args.seed)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=5, hidden_size=model_args.width, num_hidden_layers=model_args.layers,
        num_attention_heads=4, intermediate_size=4 * model_args.width,
        max_position_embeddings=model_args.length))
    trainer = Trainer(
        model=model, args=training_args, compute_metrics=accuracy,
        train_dataset=Letters(model_args.rows, model_args.length, seed=1),
        eval_dataset=Letters(200, model_args.length, seed=2))
    trainer.add_callback(hpo.hf.HpoCallback(trainer))  # hpo: 3
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
