"""Models of every family without weights, a tokenizer and data for every task: nothing has to be
brought to the machine. Shapes and vocabularies are those of the published models."""

import json
import random

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SYLLABLES = ["ba", "de", "ki", "lo", "mu", "ra", "se", "ti", "vo", "zu"]
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES]
# What the tasks of several queries ask with.
QUESTIONS = ["which", "aspects", "opinions", "of", "are", "?", "null", "food", "service"]

DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"],
        "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512,
        "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, **DROPOUT}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForSequenceClassification"],
         "vocab_size": 151936, "hidden_size": 896, "num_hidden_layers": 24,
         "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
         "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
         "rope_theta": 1e6, "tie_word_embeddings": True, "initializer_range": 0.02,
         "attention_dropout": 0.0, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}

# Name -> its config.json.
MODELS = {
    "bert-base": BERT,
    "bert-large": {**BERT, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
                   "intermediate_size": 4096},
    "distilbert": {"model_type": "distilbert", "architectures":
                   ["DistilBertForSequenceClassification"], "vocab_size": 30522, "dim": 768,
                   "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "activation": "gelu",
                   "max_position_embeddings": 512, "dropout": 0.1, "attention_dropout": 0.1,
                   "seq_classif_dropout": 0.2, "initializer_range": 0.02, "pad_token_id": 0},
    "electra": {**BERT, "model_type": "electra", "architectures":
                ["ElectraForSequenceClassification"], "embedding_size": 768},
    "roberta": {**BERT, "model_type": "roberta", "architectures":
                ["RobertaForSequenceClassification"], "vocab_size": 50265, "type_vocab_size": 1,
                "max_position_embeddings": 514, "layer_norm_eps": 1e-5, "pad_token_id": 1},
    "xlm-roberta": {**BERT, "model_type": "xlm-roberta", "architectures":
                    ["XLMRobertaForSequenceClassification"], "vocab_size": 250002,
                    "type_vocab_size": 1, "max_position_embeddings": 514, "layer_norm_eps": 1e-5,
                    "pad_token_id": 1},
    "deberta-v3": {**BERT, "model_type": "deberta-v2", "architectures":
                   ["DebertaV2ForSequenceClassification"], "vocab_size": 128100,
                   "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": True,
                   "max_relative_positions": -1, "position_buckets": 256,
                   "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
                   "position_biased_input": False, "pooler_hidden_size": 768,
                   "pooler_hidden_act": "gelu", "pooler_dropout": 0.0},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2ForSequenceClassification"],
             "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
             "n_inner": None, "activation_function": "gelu_new", "attn_pdrop": 0.1,
             "embd_pdrop": 0.1, "resid_pdrop": 0.1, "layer_norm_epsilon": 1e-5,
             "initializer_range": 0.02, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
    "llama": {**QWEN2, "model_type": "llama", "architectures": ["LlamaForSequenceClassification"],
              "vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 4,
              "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632,
              "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": False,
              "attention_bias": False, "mlp_bias": False, "head_dim": 64},
    "qwen2.5-0.5b": QWEN2,
    "qwen2.5-7b": {**QWEN2, "vocab_size": 152064, "hidden_size": 3584, "num_hidden_layers": 28,
                   "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
                   "tie_word_embeddings": False},
}


def tokenizer(size):
    """A WordPiece of `size` whole words as tokenizer.json: it decides alone, whatever the family."""
    words = SPECIAL + WORDS + QUESTIONS + [".", ","]
    words += [f"word{i}" for i in range(size - len(words))]

    def special(name, segment):
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special("[CLS]", 0), text("A", 0), special("[SEP]", 0)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "decoder": None,
        "added_tokens": [{"id": i, "content": word, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for i, word in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": single,
            "pair": [*single, text("B", 1), special("[SEP]", 1)],
            "special_tokens": {word: {"id": word, "ids": [SPECIAL.index(word)], "tokens": [word]}
                               for word in ("[CLS]", "[SEP]")}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {word: i for i, word in enumerate(words)}}}


def write_model(models, name, layers=None):
    """The folder of a model; with `layers`, of no more than so many, and of few words."""
    config = dict(MODELS[name])
    if layers:
        config["vocab_size"] = 2000
    for key in ("num_hidden_layers", "n_layers", "n_layer"):
        if layers and key in config:
            config[key] = min(layers, config[key])
    folder = models / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(config["vocab_size"])) + "\n")
    return folder


def row_of(task, draw, words):
    text = " ".join(draw.choices(WORDS, k=words))
    if task == "language-modeling":
        return {"text": text}
    if task == "text-regression":
        return {"text": text, "label": round(draw.uniform(0, 1), 3)}
    if task.startswith("multi-query"):
        # An opinion of each aspect; both are phrases of the text.
        phrases = draw.sample(text.split(), min(2 * draw.randint(1, 4), words // 2 * 2))
        return {"Text": text, "Quadruplet": [
            {"Aspect": aspect, "Category": draw.choice(["FOOD", "SERVICE"]), "Opinion": opinion,
             "VA": f"{draw.uniform(1, 9):.2f}#{draw.uniform(1, 9):.2f}"}
            for aspect, opinion in zip(phrases[::2], phrases[1::2])]}
    label = draw.choice(["no", "yes"])
    return {"text": text, "pair": " ".join(draw.choices(WORDS, k=4)), "label": label}


def write_data(folder, task, rows, longest):
    """train.jsonl and valid.jsonl of `rows` and a quarter as many, of up to `longest` words."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    for name, count in (("train.jsonl", rows), ("valid.jsonl", rows // 4)):
        lengths = [longest, longest] + [draw.randint(longest // 4, longest) for _ in range(count)]
        lines = [json.dumps(row_of(task, draw, length)) for length in lengths[:count]]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder
