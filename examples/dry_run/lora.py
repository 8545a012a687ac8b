"""Fine-tunes a Llama with LoRA adapters of PEFT in bfloat16. Weights and tokens are random."""

import argparse

import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--layers", type=int, default=16)
    given = parser.parse_args()
    config = LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=given.layers,
                         num_attention_heads=32, num_key_value_heads=8)
    with torch.device("cuda"):
        model = LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)
    model = peft.get_peft_model(model, peft.LoraConfig(r=given.rank, target_modules=["q_proj", "v_proj"]))
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    for _ in range(100):
        tokens = torch.randint(config.vocab_size, (given.batch, given.length), device="cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
