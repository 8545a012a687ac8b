"""A user's script with Hugging Face's Trainer, for bench/hf_oom: a language model of random weights
on random tokens, whose memory the batch, the length and the width decide."""

import math

import torch
import transformers

import hpo.hf

BATCHES, LENGTHS, WIDTHS = [16, 32, 64, 96], [32, 96], [16, 32, 64]
VOCABULARY = 8192  # logits are what fills the memory, and cost little time
STEPS = 2  # the second with the optimizer's states


class RandomTokens(torch.utils.data.Dataset):
    """Some 1 GiB of token ids, all of them in memory: that much less is left for training."""

    TOKENS = torch.randint(0, VOCABULARY, (1 << 27,), generator=torch.Generator().manual_seed(0))

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        tokens = self.TOKENS[index * self.length:(index + 1) * self.length]
        return {"input_ids": tokens, "labels": tokens}


def train(trial):
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTHS[-1], n_embd=trial["width"], n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0)
    args = transformers.TrainingArguments(**hpo.hf.arguments(
        trial, max_steps=STEPS, save_strategy="no", logging_steps=1, report_to=[],
        disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False))
    transformers.utils.logging.set_verbosity_error()
    trainer = transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config), args=args, train_dataset=RandomTokens(trial["length"]))
    trainer.add_callback(hpo.hf.HpoCallback(trainer, trial))
    loss = trainer.train().training_loss
    # Larger is better, so that the search wants what is at the limit.
    size = sum(math.log(trial[name] / most) for name, most in (
        ("per_device_train_batch_size", BATCHES[-1]), ("length", LENGTHS[-1]),
        ("width", WIDTHS[-1])))
    return {"score": math.exp(size / 8) - 0.1 * (math.log10(trial["learning_rate"]) + 4) ** 2,
            "loss": loss}
