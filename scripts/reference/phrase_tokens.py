#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/vectors_phrases.jsonl: which tokens of a text its words are, by
the offsets that Hugging Face's tokenizers gives (ours give none).

A line is {"tokenizer", "text", "phrases": [[begin, end, from, first, last], ...]}: bytes
[begin, end) of the text are tokens [first, last) of it, those that have one of its characters;
tokens from `from` on have nothing but the blanks before it. Phrases are all words and pairs of
neighbouring words. Run in an environment with tokenizers 0.23:
    python3 scripts/reference/phrase_tokens.py tests/golden/tokenizers"""

import json
import os
import re
import sys

import tokenizers

FOLDERS = ["json-bert", "json-bert-added", "json-deberta", "json-llama2", "json-llama2-metaspace",
           "json-llama3", "json-qwen2", "json-roberta", "json-xlmr"]
TEXTS = [
    "the wine was wonderful , we did not finish it , the street was cosy , it was all awful .",
    "The staff (and the waiter) weren't slow, but the coffee-machine was; 2 stars out of 10!",
    "  Two  blanks,\ttabs and \"quotes\": they all count  ",
    "Übergroße Portionen und kühles Bier, çok güzel bir kahve",
    "кот сидит в котельной, а не на коте",
    "it's the waiter's fault... isn't it?",
    "unbelievably overpriced/underwhelming $12.50 salad",
]


def expected_of(tokenizer, text):
    encoding = tokenizer.encode(text, add_special_tokens=False)
    words = [match.span() for match in re.finditer(r"\w+", text)]
    spans = words + [(first[0], second[1]) for first, second in zip(words, words[1:])]
    for begin, end in spans:
        tokens = [i for i, (first, last) in enumerate(encoding.offsets)
                  if any(not text[at].isspace() for at in range(max(begin, first), min(end, last)))]
        blanks = tokens[0]
        while blanks > 0 and not text[slice(*encoding.offsets[blanks - 1])].strip():
            blanks -= 1
        as_bytes = [len(text[:at].encode()) for at in (begin, end)]
        yield [*as_bytes, blanks, tokens[0], tokens[-1] + 1]


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "vectors_phrases.jsonl"), "w") as file:
        for folder in FOLDERS:
            tokenizer = tokenizers.Tokenizer.from_file(os.path.join(root, folder, "tokenizer.json"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            for text in TEXTS:
                line = {"tokenizer": folder, "text": text,
                        "phrases": list(expected_of(tokenizer, text))}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
