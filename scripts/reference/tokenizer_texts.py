"""Difficult text for the golden files of tokenizers, and how their rows are written.

Random texts draw only on characters whose class has not changed since Unicode 3.2, because the
libraries' character tables are of another Unicode version than utf8proc's.
"""

import hashlib
import json
import unicodedata

COMMON = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

HARD_TEXTS = [
    "",
    " \t\r\n\u00a0\u2003\u3000 ",
    "caf\u00e9 cafe\u0301 na\u00efve \u0130stanbul \u01c5 \u00df \u1e9e",
    "\u212bngstr\u00f6m \u2126 \u212a 5\u00b5m 5\u03bcm",
    "\u1e69 s\u0323\u0307 s\u0307\u0323 \u1ec7",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \u3131\u314f",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3001\u5168\u89d2\uff01 \uff21\uff22\uff23",
    "\uf900\ufa0e a\U00020000b a\U0002a700b a\U0002b81fb a\U0002f800b a\U0002b8aab",
    "zero\u200bwidth soft\u00adhyphen \ufeffbom right\u200fmark join\u200der",
    "nul\u0000byte bell\u0007 esc\u001b[0m del\u007f tab\tvt\u000bff\u000c nel\u0085end",
    "repl\ufffdaced private\ue000use noncharacter\ufdd0 last\uffff",
    "\u037e \u1fef \u0340a \u2024 \u2026 \u00bd \u2460",
    "semi;colon,dash\u2014em\u2013en\u2212minus $1,000.00 50% a+b=c <x> `q` ^_^ ~|",
    "\u00abquotes\u00bb \u201ccurly\u201d \u2018single\u2019 \u00bfqu\u00e9? \u00a1s\u00ed! \u00a7 \u00b6 \u00b7",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8\u05b4\u05d9\u05ea \u0627\u0644\u0639\u064e\u0631\u0628\u064a\u0629\u061f",
    "\u0395\u039b\u039b\u0397\u039d\u0399\u039a\u0386 \u03a3\u03a3 \u039f\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2 \u1f08\u03b8\u1fc6\u03bd\u03b1\u03b9",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0439 \u0451\u0436 \u040d \u0407\u0436\u0430\u043a",
    "\U0001f600 smile\U0001f600face \u2764\ufe0f \U0001f1e9\U0001f1ea \U0001f468\u200d\U0001f469",
    "\ufb01ne \ufb03x \u2168 \u33a5 \u1d2c\u02b0 x\u00b2",
    "[CLS] [SEP] [PAD] [MASK] [UNK] a[SEP]b [sep] [ SEP ] [[MASK]] [SEP][SEP",
    "##ing # ## un##able",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101,
    "\u00e9" * 100 + " " + "\u00e9" * 101 + " " + "e\u0301" * 100 + " " + "\u5b57" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "unaffable unwanted running UPPER MiXeD iPhone McDonald's don't I'LL we\u2019re",
    "http://example.org/a_b?c=d&e=f#g user@host.example C++ .NET x86_64-linux-gnu",
    "\U00010400\U00010428 \U0001d400\U0001d7d8 \U000e0041tag \U0010fffd",
    "\u0338\u0301leading marks a\u0338\u20dd",
]

# What the patterns of byte-level tokenizers and SentencePiece's blanks are sensitive to.
BLANK_TEXTS = [
    "a\r\n\r\n\r\nb\n\n \n c\r\r d \r\n\t\te   \n",
    "    four\n   three  two one\n\n\n    \tx",
    "tab\t\t\tword \t word\u00a0\u00a0nbsp \u2003\u2003em\u3000\u3000ideographic \u2028line\u2029",
    "12345678 1 12 123 1234 3.14159 1,000,000 \u0661\u0662\u0663\u0664 \u2167\u00bd\u00b2",
    "I'm you'RE he'S they'Ve 'tis 'twas rock'n'roll it'\u017f l'\u00e9t\u00e9 ''s '' 'S",
    "!!!wow???  ...  --- ___ ((a)) [b] {c} <|d|> #tag @user $x %y ^z &w *v*",
    "def f(x):\n\treturn x**2  # done\r\n\r\n\r\nclass A:\n    pass\n",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 "
    "\U0001f44d\U0001f3fd \U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1",
    "\u2581low \u2581 \u2581\u2581line a\u2581b ",
    "   leading and trailing   ",
    "<s> </s> <pad> <unk> <mask>  <s>a</s>b <mask>c  <mask>  d<mask>",
    "<|endoftext|> <|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
]

# Words of 100,000 characters: (unit, times).
LONG_WORDS = [
    ("a", 100_000),
    ("abc", 33_334),
    ("\u5b57\u00e9", 50_000),
    ("\U0001f600", 100_000),
    (" ", 100_000),
    ("\n ", 50_000),
    ("the quick brown ", 6_250),
    ("0123456789", 10_000),
]


def stable_characters():
    """Characters by category, of those whose category is that of Unicode 3.2."""
    old = unicodedata.ucd_3_2_0
    groups = {}
    for code in range(0x20, 0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Cs", "Co") or old.category(character) != category:
            continue
        groups.setdefault(category, []).append(character)
    return groups


def random_text(rng, groups, words):
    text = []
    for _ in range(rng.randrange(1, words)):
        for _ in range(rng.randrange(1, 9)):
            if rng.random() < 0.6:
                text.append(rng.choice(COMMON))
            else:
                text.append(rng.choice(groups[rng.choice(sorted(groups))]))
        text.append(rng.choice([" ", " ", " ", "\n", "", "-"]))
    return "".join(text)


def random_cases(rng, groups, texts, pairs, shortest=5):
    """(text, pair or None, max_length from `shortest` on, or None)"""
    cases = [(random_text(rng, groups, 8), None, None) for _ in range(texts)]
    for _ in range(pairs):
        pair = random_text(rng, groups, 8) if rng.random() < 0.7 else None
        cases.append((random_text(rng, groups, 8), pair, rng.randrange(shortest, 24)))
    return cases


def write_rows(path, rows, ascii_only=True):
    path.write_text("".join(json.dumps(row, separators=(",", ":"), ensure_ascii=ascii_only) + "\n"
                            for row in rows), encoding="utf-8")
    print(f"{path.name}: {len(rows)} rows")


def vector(name, tokenizer, text, pair=None, max_length=None):
    """One row of a golden file, from a Tokenizer of the package `tokenizers`."""
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length, strategy="longest_first")
    encoding = tokenizer.encode(text, pair)
    row = {"tokenizer": name, "text": text}
    if pair is not None:
        row["pair"] = pair
    if max_length is not None:
        row["max_length"] = max_length
    row["ids"] = encoding.ids
    row["type_ids"] = encoding.type_ids
    return row


def long_vector(name, encode, unit, times):
    """A row for a text of `times` units: how many ids, and their digest as decimals with commas."""
    ids = encode(unit * times)
    digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
    return {"tokenizer": name, "unit": unit, "times": times, "num_ids": len(ids), "sha256": digest}
