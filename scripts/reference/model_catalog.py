#!/usr/bin/env python3
"""Writes tests/golden/model_catalog.json: the parameters of every model of common/study/model_catalog as
Hugging Face's own code builds them.

Models are built on torch's meta device from the configurations below, which are the published
config.json files less what has no effect on shapes; nothing is downloaded and nothing comes from
our code. Run in a virtual environment with
    pip install torch transformers==5.23.0 peft==0.21.2
    scripts/reference/model_catalog.py tests/golden/model_catalog.json
"""

import hashlib
import json
import sys

import peft
import torch
import transformers

NUM_LABELS = 3

BERT = dict(model_type="bert", vocab_size=30522, hidden_size=768, num_hidden_layers=12,
            num_attention_heads=12, intermediate_size=3072, max_position_embeddings=512,
            type_vocab_size=2, hidden_act="gelu", hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1, layer_norm_eps=1e-12, pad_token_id=0)
ROBERTA = dict(BERT, model_type="roberta", vocab_size=50265, max_position_embeddings=514,
               type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
XLM_ROBERTA = dict(ROBERTA, model_type="xlm-roberta", vocab_size=250002)
ELECTRA = dict(BERT, model_type="electra", embedding_size=768)
LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
MINILM = dict(hidden_size=384, intermediate_size=1536)
DEBERTA = dict(BERT, model_type="deberta-v2", vocab_size=128100, type_vocab_size=0,
               layer_norm_eps=1e-7, relative_attention=True, max_relative_positions=-1,
               position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
               pos_att_type="p2c|c2p", position_biased_input=False)
DEBERTA_V2 = dict(DEBERTA, hidden_size=1536, num_hidden_layers=24, num_attention_heads=24,
                  intermediate_size=6144, attention_head_size=64, conv_kernel_size=3,
                  conv_act="gelu", pos_att_type=["p2c", "c2p"])
DISTILBERT = dict(model_type="distilbert", vocab_size=30522, dim=768, n_layers=6, n_heads=12,
                  hidden_dim=3072, max_position_embeddings=512, activation="gelu", dropout=0.1,
                  attention_dropout=0.1, pad_token_id=0)
GPT2 = dict(model_type="gpt2", vocab_size=50257, n_embd=768, n_layer=12, n_head=12,
            n_positions=1024, activation_function="gelu_new", resid_pdrop=0.1, embd_pdrop=0.1,
            attn_pdrop=0.1, layer_norm_epsilon=1e-5)
LLAMA = dict(model_type="llama", vocab_size=32000, hidden_size=4096, intermediate_size=11008,
             num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
             max_position_embeddings=4096, hidden_act="silu", rms_norm_eps=1e-5,
             tie_word_embeddings=False, torch_dtype="float16")
LLAMA_3 = dict(LLAMA, vocab_size=128256, intermediate_size=14336, num_key_value_heads=8,
               max_position_embeddings=8192, attention_bias=False, torch_dtype="bfloat16")
LLAMA_32 = dict(LLAMA_3, max_position_embeddings=131072, mlp_bias=False, intermediate_size=8192,
                tie_word_embeddings=True)
QWEN2 = dict(model_type="qwen2", vocab_size=151936, hidden_size=896, intermediate_size=4864,
             num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
             max_position_embeddings=32768, hidden_act="silu", rms_norm_eps=1e-6,
             tie_word_embeddings=True, attention_dropout=0.0, torch_dtype="bfloat16")


def qwen(hidden, inner, layers, heads, kv, positions, **rest):
    return dict(QWEN2, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv,
                max_position_embeddings=positions, **rest)


UNTIED = dict(vocab_size=152064, tie_word_embeddings=False)

CATALOG = {
    "bert-base-uncased": BERT,
    "bert-base-cased": dict(BERT, vocab_size=28996),
    "bert-base-multilingual-cased": dict(BERT, vocab_size=119547),
    "bert-base-multilingual-uncased": dict(BERT, vocab_size=105879),
    "bert-large-uncased": dict(BERT, **LARGE),
    "bert-large-cased": dict(BERT, **LARGE, vocab_size=28996),
    "roberta-base": ROBERTA,
    "roberta-large": dict(ROBERTA, **LARGE),
    "xlm-roberta-base": XLM_ROBERTA,
    "xlm-roberta-large": dict(XLM_ROBERTA, **LARGE),
    "camembert-base": dict(ROBERTA, model_type="camembert", vocab_size=32005),
    "microsoft/deberta-v3-xsmall": dict(DEBERTA, hidden_size=384, num_attention_heads=6,
                                        intermediate_size=1536),
    "microsoft/deberta-v3-small": dict(DEBERTA, num_hidden_layers=6),
    "microsoft/deberta-v3-base": DEBERTA,
    "microsoft/deberta-v3-large": dict(DEBERTA, **LARGE),
    "microsoft/mdeberta-v3-base": dict(DEBERTA, vocab_size=251000),
    "microsoft/deberta-v2-xlarge": DEBERTA_V2,
    "microsoft/deberta-v2-xxlarge": dict(DEBERTA_V2, num_hidden_layers=48),
    "sentence-transformers/all-MiniLM-L6-v2": dict(BERT, **MINILM, num_hidden_layers=6),
    "sentence-transformers/all-MiniLM-L12-v2": dict(BERT, **MINILM),
    "all-minilm-l6-v2": dict(BERT, **MINILM, num_hidden_layers=6),
    "microsoft/MiniLM-L12-H384-uncased": dict(BERT, **MINILM),
    "distilbert-base-uncased": DISTILBERT,
    "distilbert-base-cased": dict(DISTILBERT, vocab_size=28996),
    "google/electra-small-discriminator": dict(ELECTRA, embedding_size=128, hidden_size=256,
                                               num_attention_heads=4, intermediate_size=1024),
    "google/electra-base-discriminator": ELECTRA,
    "google/electra-large-discriminator": dict(ELECTRA, **LARGE, embedding_size=1024),
    "gpt2": GPT2,
    "gpt2-medium": dict(GPT2, n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": dict(GPT2, n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": dict(GPT2, n_embd=1600, n_layer=48, n_head=25),
    "meta-llama/Llama-2-7b-hf": LLAMA,
    "meta-llama/Meta-Llama-3-8B": LLAMA_3,
    "meta-llama/Llama-3.1-8B": dict(LLAMA_3, max_position_embeddings=131072, mlp_bias=False),
    "meta-llama/Llama-3.2-1B": dict(LLAMA_32, hidden_size=2048, num_hidden_layers=16, head_dim=64),
    "meta-llama/Llama-3.2-3B": dict(LLAMA_32, hidden_size=3072, num_hidden_layers=28,
                                    num_attention_heads=24, head_dim=128),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": dict(
        LLAMA, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
        num_key_value_heads=4, max_position_embeddings=2048, torch_dtype="bfloat16"),
    "Qwen/Qwen2.5-0.5B": QWEN2,
    "Qwen/Qwen2.5-0.5B-Instruct": QWEN2,
    "Qwen/Qwen2.5-1.5B": qwen(1536, 8960, 28, 12, 2, 131072),
    "Qwen/Qwen2.5-1.5B-Instruct": qwen(1536, 8960, 28, 12, 2, 32768),
    "Qwen/Qwen2.5-3B": qwen(2048, 11008, 36, 16, 2, 32768),
    "Qwen/Qwen2.5-3B-Instruct": qwen(2048, 11008, 36, 16, 2, 32768),
    "Qwen/Qwen2.5-7B": qwen(3584, 18944, 28, 28, 4, 131072, **UNTIED),
    "Qwen/Qwen2.5-7B-Instruct": qwen(3584, 18944, 28, 28, 4, 32768, **UNTIED),
    "Qwen/Qwen2.5-14B": qwen(5120, 13824, 48, 40, 8, 131072, **UNTIED),
    "Qwen/Qwen2.5-14B-Instruct": qwen(5120, 13824, 48, 40, 8, 32768, **UNTIED),
}

# Small models with every tensor listed, and the options that no published model above has.
SMALL = dict(vocab_size=96, num_hidden_layers=2, intermediate_size=40, max_position_embeddings=24)
TINY = {
    "bert": dict(BERT, **SMALL, hidden_size=16, num_attention_heads=4),
    "roberta": dict(ROBERTA, **SMALL, hidden_size=16, num_attention_heads=4),
    "deberta": dict(DEBERTA, **SMALL, hidden_size=16, num_attention_heads=4, position_buckets=6),
    "deberta, every option": dict(
        DEBERTA, **SMALL, hidden_size=16, num_attention_heads=4, type_vocab_size=2,
        embedding_size=8, max_relative_positions=10, position_buckets=-1, share_att_key=False,
        position_biased_input=True, conv_kernel_size=3, norm_rel_ebd="none"),
    "deberta, one projection": dict(
        DEBERTA, **SMALL, hidden_size=16, num_attention_heads=4, max_relative_positions=-1,
        position_buckets=-1, share_att_key=False, pos_att_type="c2p"),
    "deberta, absolute": dict(DEBERTA, **SMALL, hidden_size=16, num_attention_heads=4,
                              relative_attention=False, position_biased_input=True,
                              pos_att_type=[]),
    "distilbert": dict(DISTILBERT, vocab_size=96, dim=16, n_layers=2, n_heads=4, hidden_dim=40,
                       max_position_embeddings=24),
    "electra": dict(ELECTRA, **SMALL, hidden_size=16, num_attention_heads=4, embedding_size=8),
    "gpt2": dict(GPT2, vocab_size=96, n_embd=16, n_layer=2, n_head=4, n_positions=24),
    "gpt2, own inner size, untied": dict(GPT2, vocab_size=96, n_embd=16, n_layer=2, n_head=4,
                                         n_positions=24, n_inner=40, tie_word_embeddings=False),
    "llama": dict(LLAMA, **SMALL, hidden_size=16, num_attention_heads=4, num_key_value_heads=2),
    "llama, every option": dict(
        LLAMA, **SMALL, hidden_size=16, num_attention_heads=4, num_key_value_heads=1, head_dim=6,
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "qwen2": dict(QWEN2, **SMALL, hidden_size=16, num_attention_heads=4, num_key_value_heads=2),
}

AUTO = {"none": transformers.AutoModel,
        "sequence-classification": transformers.AutoModelForSequenceClassification,
        "causal-lm": transformers.AutoModelForCausalLM}
DECODERS = ("gpt2", "llama", "qwen2")


def build(config, head):
    config = dict(config)
    hf_config = transformers.AutoConfig.for_model(config.pop("model_type"), **config,
                                                  num_labels=NUM_LABELS)
    with torch.device("meta"):
        return AUTO[head].from_config(hf_config, torch_dtype=torch.float32)


def line(name, parameter):
    rows = parameter.shape[0]
    return f"{name} {rows} {parameter.numel() // rows}"


def lines_of(model):
    return [line(name, parameter) for name, parameter in model.named_parameters()]


def summary(config, head, listed):
    model = build(config, head)
    lines = lines_of(model)
    result = {"parameters": sum(p.numel() for p in model.parameters()), "tensors": len(lines)}
    if listed:
        result["lines"] = lines
    else:
        result["sha256"] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return result


def entry(config, listed):
    heads = ["none", "sequence-classification"]
    if config["model_type"] in DECODERS:
        heads.append("causal-lm")
    return {"config": config, "heads": {head: summary(config, head, listed) for head in heads}}


LORA = [
    ("bert", "sequence-classification", {}),
    ("roberta", "sequence-classification", {}),
    ("deberta", "sequence-classification", {}),
    ("distilbert", "sequence-classification", {"target_modules": ["q_lin", "v_lin"]}),
    ("electra", "sequence-classification", {}),
    ("roberta", "sequence-classification", {"target_modules": ["dense", "query"]}),
    ("gpt2", "causal-lm", {}),
    ("llama", "causal-lm", {}),
    ("qwen2", "causal-lm", {}),
    ("qwen2", "sequence-classification", {}),
    ("llama", "causal-lm", {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                                               "up_proj", "down_proj"]}),
    ("llama, every option", "causal-lm", {"target_modules": "all-linear"}),
    ("gpt2", "causal-lm", {"target_modules": "all-linear"}),
    ("deberta", "sequence-classification", {"target_modules": "all-linear"}),
    ("bert", "sequence-classification", {"target_modules": ["dense", "word_embeddings"]}),
    ("Qwen/Qwen2.5-7B", "causal-lm", {"r": 128, "target_modules": "all-linear"}),
    ("meta-llama/Llama-2-7b-hf", "causal-lm", {"r": 128, "target_modules": "all-linear"}),
]


def lora(name, head, options):
    config = TINY.get(name) or CATALOG[name]
    task = {"sequence-classification": "SEQ_CLS", "causal-lm": "CAUSAL_LM"}[head]
    options = dict({"r": 4}, **options)
    with torch.device("meta"):
        model = peft.get_peft_model(build(config, head),
                                    peft.LoraConfig(task_type=task, **options))
    lines = [line(name.removeprefix("base_model.model."), parameter)
             for name, parameter in model.named_parameters() if parameter.requires_grad]
    targets = options.get("target_modules", [])
    return {"model": name, "head": head, "rank": options["r"],
            "targets": [targets] if isinstance(targets, str) else targets,
            "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
            "tensors": len(lines), "lines": lines if name in TINY else lines[:14]}


def main(path):
    golden = {
        "versions": {"transformers": transformers.__version__, "peft": peft.__version__},
        "num_labels": NUM_LABELS,
        "catalog": {name: entry(config, False) for name, config in CATALOG.items()},
        "tiny": {name: entry(config, True) for name, config in TINY.items()},
        "lora": [lora(*case) for case in LORA],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
