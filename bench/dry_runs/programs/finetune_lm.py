"""Fine-tunes a causal language model with Hugging Face's Trainer on blocks of tokens.

All options of TrainingArguments are options of this program. The last line is the Trainer's metrics as JSON.
"""

import dataclasses
import json

import torch
from transformers import HfArgumentParser, Qwen2Config, Qwen2ForCausalLM, Trainer, TrainingArguments, set_seed

VOCABULARY = 8192


@dataclasses.dataclass
class ModelArguments:
    width: int = dataclasses.field(default=512, metadata={"help": "hidden size, a multiple of 64"})
    layers: int = dataclasses.field(default=4, metadata={"help": "number of layers"})
    block_size: int = dataclasses.field(default=512, metadata={"help": "tokens of a row"})
    num_rows: int = dataclasses.field(default=2000, metadata={"help": "rows of training data"})


class Blocks(torch.utils.data.Dataset):
    """Rows of tokens, all of one length."""

    def __init__(self, num_rows, block_size):
        self._tokens = torch.randint(VOCABULARY, (num_rows, block_size), generator=torch.Generator().manual_seed(7))

    def __len__(self):
        return len(self._tokens)

    def __getitem__(self, row):
        return {"input_ids": self._tokens[row], "labels": self._tokens[row]}


def make_model(arguments):
    heads = arguments.width // 64
    return Qwen2ForCausalLM(Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=arguments.width, intermediate_size=3 * arguments.width,
        num_hidden_layers=arguments.layers, num_attention_heads=heads, num_key_value_heads=heads // 2 or 1,
        max_position_embeddings=arguments.block_size))


def main():
    arguments, training = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
    set_seed(training.seed)
    trainer = Trainer(model=make_model(arguments), args=training,
                      train_dataset=Blocks(arguments.num_rows, arguments.block_size))
    metrics = trainer.train().metrics
    print(json.dumps({**metrics, "total_flos": trainer.state.total_flos}))


if __name__ == "__main__":
    main()
