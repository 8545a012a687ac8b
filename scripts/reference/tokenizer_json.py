#!/usr/bin/env python3
"""Writes the golden files of tokenizer.json in tests/golden/tokenizers, for
tests/worker/text/tokenizers/families/tokenizer_json_test.cc: small tokenizers of every family in this format, trained
here, what Hugging Face's `tokenizers` makes of difficult text with them, and what its normalizers and
pre-tokenizers make of it one by one.

    python3 -m venv /tmp/reference
    /tmp/reference/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2
    /tmp/reference/bin/python scripts/reference/tokenizer_json.py TEXTS

TEXTS is a .jsonl or .jsonl.gz with `text`. The rewriting rules are those of the SentencePiece models
that sentencepiece_vectors.py wrote.
"""

import json
import pathlib
import random
import sys

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

from byte_bpe import QWEN2_REGEX, read_texts
from tokenizer_texts import (BLANK_TEXTS, HARD_TEXTS, LONG_WORDS, long_vector, random_cases,
                             stable_characters, vector, write_rows)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
SEED = 20261124
LLAMA3_REGEX = QWEN2_REGEX.replace(r"\p{N}| ?", r"\p{N}{1,3}| ?")
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
VOCABULARY = 1_200


def charsmap(model):
    proto = sentencepiece_model_pb2.ModelProto.FromString((GOLDEN / model).read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


def special(*contents, **flags):
    return [AddedToken(content, special=True, normalized=False, **flags) for content in contents]


def template(single, pair, tokenizer, *names):
    return processors.TemplateProcessing(
        single=single, pair=pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])


def bert(texts, extra=()):
    known = (GOLDEN / "bert-base-uncased" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    corpus = " ".join(texts).lower()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [token for token in known if token.removeprefix("##") in corpus
               and token not in tokens and token][:2 * VOCABULARY]
    tokenizer = Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)},
                                           unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(special(*tokens[:5]))
    tokenizer.add_tokens(list(extra))
    tokenizer.post_processor = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", tokenizer,
                                        "[CLS]", "[SEP]")
    return tokenizer


def byte_bpe(texts, words, tokens, normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = words
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, initial_alphabet=BYTES))
    tokenizer.add_special_tokens(tokens)
    return tokenizer


def split(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def roberta(texts):
    tokenizer = byte_bpe(texts, pre_tokenizers.ByteLevel(add_prefix_space=True),
                         special("<s>", "<pad>", "</s>") + special("<mask>", lstrip=True))
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def llama3(texts):
    tokenizer = byte_bpe(texts, split(LLAMA3_REGEX), special("<|begin_of_text|>", "<|end_of_text|>"),
                         ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        template("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", tokenizer,
                 "<|begin_of_text|>")])
    return tokenizer


def qwen2(texts):
    tokenizer = byte_bpe(texts, split(QWEN2_REGEX),
                         special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), normalizers.NFC())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("caf\u00e9",
                                                                            single_word=True)])
    return tokenizer


def llama2(texts, metaspace):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, limit_alphabet=90,
        special_tokens=special("<unk>", "<s>", "</s>") + byte_tokens))
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", tokenizer, "<s>")
    return tokenizer


def unigram(model, normalizer, words, tokens, unknown):
    """The pieces of a SentencePiece model behind other special tokens."""
    proto = sentencepiece_model_pb2.ModelProto.FromString((GOLDEN / model).read_bytes())
    vocab = [(str(token), 0.0) for token in tokens]
    vocab += [(p.piece, round(p.score, 4)) for p in proto.pieces if p.type == 1]
    tokenizer = Tokenizer(models.Unigram(vocab, [str(token) for token in tokens].index(unknown)))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = words
    tokenizer.add_special_tokens(tokens)
    return tokenizer


def xlmr():
    tokenizer = unigram(
        "xlmr-like/sentencepiece.bpe.model",
        normalizers.Sequence([normalizers.Precompiled(charsmap("deberta-like/spm.model")),
                              normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                 pre_tokenizers.Metaspace(prepend_scheme="always")]),
        special("<s>", "<pad>", "</s>", "<unk>") + special("<mask>", lstrip=True), "<unk>")
    tokenizer.post_processor = template("<s> $A </s>", "<s> $A </s> </s> $B </s>", tokenizer,
                                        "<s>", "</s>")
    return tokenizer


def deberta():
    tokenizer = unigram(
        "deberta-like/spm.model",
        normalizers.Sequence([normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
                              normalizers.NFC(), normalizers.Strip(left=False, right=True)]),
        pre_tokenizers.Metaspace(prepend_scheme="always"),
        special("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"), "[UNK]")
    tokenizer.post_processor = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", tokenizer,
                                        "[CLS]", "[SEP]")
    return tokenizer


def families(texts):
    yield "json-bert", bert(texts)
    yield "json-bert-added", bert(texts, [
        AddedToken("I'LL", normalized=True), AddedToken("caf\u00e9", normalized=True),
        AddedToken("smile", normalized=True, single_word=True),
        AddedToken("#tag", normalized=False, rstrip=True, lstrip=True)])
    yield "json-roberta", roberta(texts)
    yield "json-llama3", llama3(texts)
    yield "json-qwen2", qwen2(texts)
    yield "json-llama2", llama2(texts, metaspace=False)
    yield "json-llama2-metaspace", llama2(texts, metaspace=True)
    yield "json-xlmr", xlmr()
    yield "json-deberta", deberta()


def parts():
    rules = charsmap("deberta-like/spm.model")
    yield from [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(),
                normalizers.Lowercase(), normalizers.StripAccents(), normalizers.Strip(),
                normalizers.Strip(left=False, right=True), normalizers.Prepend("\u2581"),
                normalizers.Replace("a", "bb"), normalizers.Replace(Regex(" {2,}"), "\u2581"),
                normalizers.Replace(Regex(r"\s+"), " "),
                normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
                normalizers.Precompiled(rules),
                normalizers.BertNormalizer(), normalizers.BertNormalizer(lowercase=False),
                normalizers.BertNormalizer(strip_accents=True, lowercase=False,
                                           handle_chinese_chars=False),
                normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(),
                                      normalizers.Lowercase()])]
    p = pre_tokenizers
    yield from [p.ByteLevel(add_prefix_space=False), p.ByteLevel(add_prefix_space=True),
                split(LLAMA3_REGEX), split(QWEN2_REGEX),
                p.Split(Regex(LLAMA3_REGEX), behavior="removed", invert=True),
                p.Whitespace(), p.WhitespaceSplit(), p.BertPreTokenizer(), p.Punctuation(),
                p.Digits(individual_digits=True), p.Digits(individual_digits=False),
                p.CharDelimiterSplit("-"), p.Metaspace(prepend_scheme="always"),
                p.Metaspace(prepend_scheme="first"),
                p.Metaspace(prepend_scheme="never", split=False),
                p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="always")]),
                p.Sequence([p.Whitespace(), p.Digits(individual_digits=True)])]
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next",
                     "contiguous"):
        yield p.Split("a", behavior=behavior)
        yield p.Punctuation(behavior=behavior)


def part_row(part, texts):
    """A normalizer's strings or a pre-tokenizer's words."""
    description = json.loads(part.__getstate__())
    if isinstance(part, normalizers.Normalizer):
        return {"normalizer": description,
                "normalized": [part.normalize_str(text) for text in texts]}
    return {"pre_tokenizer": description,
            "words": [[word for word, _ in part.pre_tokenize_str(text)] for text in texts]}


def main(texts_path):
    rng = random.Random(SEED)
    groups = stable_characters()
    cases = [(text, None, None) for text in HARD_TEXTS + BLANK_TEXTS]
    cases += random_cases(rng, groups, 25, 30)
    texts = read_texts(texts_path)[:3_000] + HARD_TEXTS * 3 + BLANK_TEXTS * 3
    rows = []
    for name, tokenizer in families(texts):
        folder = GOLDEN / name
        folder.mkdir(exist_ok=True)
        tokenizer.no_truncation()
        (folder / "tokenizer.json").write_text(tokenizer.to_str() + "\n", encoding="utf-8")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        rows += [vector(name, tokenizer, *case) for case in cases]
        tokenizer.no_truncation()
        rows += [long_vector(name, lambda text: tokenizer.encode(text).ids, *word)
                 for word in LONG_WORDS]
    write_rows(GOLDEN / "vectors_tokenizer_json.jsonl", rows)

    texts = [text for text in HARD_TEXTS + BLANK_TEXTS if 0 < len(text) < 200]
    texts += [case[0] for case in random_cases(rng, groups, 8, 0)]
    rows = [{"texts": texts}] + [part_row(part, texts) for part in parts()]
    more = [case[0] for case in random_cases(rng, groups, 150, 0)]
    rules = normalizers.Precompiled(charsmap("sentencepiece-test/test_model.model"))
    rows += [{"charsmap": "sentencepiece-test/test_model.model", "texts": more,
              "normalized": [rules.normalize_str(text) for text in more]}]
    write_rows(GOLDEN / "vectors_tokenizer_json_parts.jsonl", rows, ascii_only=False)



if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
