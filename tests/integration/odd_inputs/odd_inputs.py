"""Data files and model folders as people have them, each odd in one way, and what is right: that a trial trains on it,
or a message that names the file, the place, the cause and the cure.

usage: odd_inputs.py FOLDER   writes FOLDER/data and FOLDER/models, and prints what is right of each."""

import dataclasses
import json
import pathlib
import random
import struct
import sys

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GOOD, BAD = ["good", "great", "fine"], ["bad", "poor", "sad"]
VOCABULARY = SPECIAL + GOOD + BAD + "the film room was is".split() + list("abcdefghijklmnopqrstuvwxyz0123456789.,!?'")
HIDDEN, INNER, POSITIONS, ROWS = 8, 16, 32, 40
CONFIG = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 1,
          "num_attention_heads": 2, "intermediate_size": INNER, "max_position_embeddings": POSITIONS,
          "type_vocab_size": 2, "vocab_size": len(VOCABULARY), "pad_token_id": 0}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 440449768\n"
RESIZE = "resize_token_embeddings"
CHINESE = "这部电影非常好看 房间又小又脏 今天天气不错 价格便宜 服务态度很差".split()
TRADITIONAL = "這部電影非常好看 房間又小又髒 今天天氣不錯 價格便宜 服務態度很差".split()
JAPANESE = "この映画はとても面白かった 部屋が狭くて汚いです サービスが悪い".split()
KOREAN = ["이 영화는 정말 재미있어요", "방이 너무 작고 더러웠다", "서비스가 나쁘다"]
RUSSIAN = ["Фильм был очень хороший", "Комната маленькая и грязная", "Сегодня хорошая погода"]
GREEK = ["Η ταινία ήταν πολύ καλή", "Το δωμάτιο ήταν μικρό και βρώμικο"]
POLISH = ["Film był bardzo dobry i świetnie się bawiłem", "Pokój był mały i brudny", "Źle się tam spało"]


@dataclasses.dataclass
class Case:
    """`said`: what the message holds where it is refused; empty where it trains. `warned`: what is said in addition."""
    name: str
    said: tuple = ()
    warned: str = ""
    converted: str = ""  # what the command that the message advises makes of the training file
    train: str = "train.jsonl"
    validation: str = "valid.jsonl"
    model: str = "plain"
    task: str = "text-classification"


def rows(count=ROWS, seed=1):
    draw = random.Random(seed)
    out = []
    for index in range(count):
        words = ["the", draw.choice(["film", "room"]), "was", draw.choice(BAD if index % 2 else GOOD)]
        out.append({"text": " ".join(words), "label": "neg" if index % 2 else "pos"})
    return out


def json_lines(given, end="\n"):
    return "".join(json.dumps(row, ensure_ascii=False) + end for row in given)


def table(given, separator=",", header=("text", "label"), end="\n", quote=lambda text: text):
    lines = [separator.join(map(quote, header))] + [separator.join(map(quote, row.values())) for row in given]
    return "".join(line + end for line in lines)


class Inputs:
    def __init__(self, folder):
        self.data, self.models = folder / "data", folder / "models"
        self.data.mkdir(parents=True, exist_ok=True)
        self.cases = []

    # -- data files ---------------------------------------------------------------------------------

    def file(self, name, content, *said, **case):
        """A training file. `content`: text or bytes; None: there is none."""
        if content is not None:
            path = self.data / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.cases.append(Case(name, said, train=name, **case))

    def encodings(self):
        lines, comma = json_lines(rows()), table(rows())
        accents = [{**row, "text": row["text"] + " café"} for row in rows()]
        self.file("plain.jsonl", lines)
        self.file("utf8_mark.jsonl", lines.encode("utf-8-sig"))
        self.file("utf16_mark.jsonl", lines.encode("utf-16"))
        self.file("utf16_big_mark.csv", b"\xfe\xff" + comma.encode("utf-16-be"))
        self.file("utf16_no_mark.csv", comma.encode("utf-16-le"))
        self.file("utf32.csv", comma.encode("utf-32"), "utf32.csv:1:", "UTF-32", "iconv -f UTF-32")
        self.file("latin1.csv", table(accents).encode("latin-1"), "latin1.csv:2:2", "0xe9", "Latin-1", "iconv -f")
        self.file("cp1252.jsonl", json_lines({**row, "text": row["text"] + " 5 €"} for row in rows()).encode("cp1252"),
                  "cp1252.jsonl:1:", "0x80", "Windows-1252", "iconv -f WINDOWS-1252")
        self.file("mixed.csv", (table(accents[:20]).encode() + table(accents[20:]).encode("latin-1")), "mixed.csv:23:",
                  "mixes encodings", "write it again in UTF-8")
        self.file("one_bad_byte.csv", comma.encode() + b"caf\xe9,pos\n", warned="one_bad_byte.csv:42:4: byte 0xe9")
        self.file("one_nul.csv", comma.encode() + b"a\0b,pos\n", warned="one_nul.csv:42:2: a NUL")
        odd = '{"text": "good \\ud83d film", "label": "pos"}\n'
        self.file("lone_surrogate.jsonl", lines + odd, warned="lone_surrogate.jsonl:41:16: the escape \\ud83d")
        self.file("nul_escape.jsonl", lines + odd.replace("ud83d", "u0000"), warned="nul_escape.jsonl:41:16:")
        self.file("crlf.jsonl", json_lines(rows(), end="\r\n"))
        self.file("carriage_returns.jsonl", json_lines(rows(), end="\r"))
        self.file("carriage_returns.csv", table(rows(), end="\r"))

    def other_scripts(self):
        """Encodings of other scripts: each is named, with the command that converts the file."""
        for name, encoding, words, *said in (
                ("gbk.csv", "gbk", CHINESE, "GBK (Chinese)", "iconv -f GBK -t UTF-8 gbk.csv > gbk.utf8.csv"),
                ("gbk.jsonl", "gbk", CHINESE, "GBK (Chinese)", "iconv -f GBK"),
                ("big5.csv", "big5", TRADITIONAL, "Big5 (Chinese)", "iconv -f BIG5"),
                ("shift_jis.csv", "shift_jis", JAPANESE, "Shift-JIS (Japanese)", "iconv -f CP932"),
                ("euc_jp.jsonl", "euc_jp", JAPANESE, "EUC-JP (Japanese)", "iconv -f EUC-JP"),
                ("iso2022_jp.csv", "iso2022_jp", JAPANESE, "ISO-2022-JP (Japanese)", "iconv -f ISO-2022-JP"),
                ("euc_kr.csv", "euc_kr", KOREAN, "EUC-KR (Korean)", "iconv -f CP949"),
                ("cp1251.csv", "cp1251", RUSSIAN, "Windows-1251 (Cyrillic)", "iconv -f WINDOWS-1251"),
                ("koi8.tsv", "koi8-r", RUSSIAN, "KOI8-R (Cyrillic)", "iconv -f KOI8-R"),
                ("cp1253.csv", "cp1253", GREEK, "Windows-1253", "iconv -f WINDOWS-1253"),
                ("latin2.csv", "iso8859-2", POLISH, "Latin-2", "iconv -f ISO-8859-2"),
                ("utf7.csv", "utf-7", POLISH, "UTF-7", "iconv -f UTF-7"),
                ("utf32_no_mark.jsonl", "utf-32-le", CHINESE, "UTF-32", "iconv -f UTF-32LE")):
            given = [{"text": words[index % len(words)], "label": "neg" if index % 2 else "pos"} for index in range(ROWS)]
            content = {"csv": table, "tsv": lambda given: table(given, "\t"), "jsonl": json_lines}[name.split(".")[1]](given)
            self.file(name, content.encode(encoding), f"{name}:", "expected text in UTF-8", *said, converted=content)
        given = [{**row, "text": CHINESE[index % len(CHINESE)]} for index, row in enumerate(rows())]
        self.file("utf16_chinese.csv", table(given).encode("utf-16-le"))

    def tables(self):
        given = rows()
        def quote(text): return f'"{text}"'
        self.file("comma.csv", table(given))
        self.file("semicolon.csv", table(given, ";", quote=quote).encode("utf-8-sig"))
        self.file("tab.tsv", table(given, "\t"))
        self.file("tab.csv", table(given, "\t"))
        self.file("bar.csv", table(given, "|"))
        self.file("excel.csv", "sep=;\r\n" + table(given, ";", end="\r\n"))
        self.file("capitals.csv", table(given, header=("Text", "LABEL")))
        self.file("spaces.csv", table(given, header=(" text", " label ")))
        self.file("quoted.csv", table(given, quote=quote))
        self.file("blank_lines.csv", table(given, end="\n\n") + "   \n")
        self.file("no_header.csv", table(given[1:], header=given[0].values()), "no_header.csv:1:", "header row",
                  f"got '{given[0]['text']}', 'pos'", "write these names into the first line")
        self.file("other_names.csv", table(given, ";", header=("utterance", "label")), "other_names.csv:1:",
                  "the columns 'text'", "got 'utterance', 'label' (separated by ';')")
        self.file("sentence.csv", table(given, header=("Sentence", "label")))
        self.file("review.tsv", table(given, "\t", header=("review", "label")))
        long = ",".join(f"a long name of column {number}" for number in range(300))
        self.file("long_header.csv", long + "\n1\n", "long_header.csv:1:", "'a long name of column 0'", "(300 in all)")
        self.file("marks.csv", "\ufeff\ufeff\u200btext\u00a0,label\u3000\n" + table(given).split("\n", 1)[1] + "\x1a")
        self.file("put_together.csv", table(given) * 2, "put_together.csv:42:", "the header row of line 1 again")
        self.file("markdown.csv", "| text | label |\n|---|---|\n| a | x |\n", "markdown.csv:2:", "Markdown", "as CSV")
        self.file("list_labels.csv", "text,labels\na,\"['x', 'y']\"\n", "list_labels.csv:2: labels:", "a|b", "['x', 'y']")
        self.file("exchanged.csv", table(given, header=("label", "text")), "valid.jsonl:1:", "got 'pos'")
        self.file("spaces_for_tabs.tsv", table(given, "   "), "spaces_for_tabs.tsv:1:", "not separated by")
        self.file("comment.csv", "# made by a script\n" + table(given), "comment.csv:1:", "a comment", "remove it")
        self.file("lines_in.csv", json_lines(given), "lines_in.csv:1:1:", "got JSON", "ends in .jsonl")
        self.file("array_in.csv", json.dumps(given, indent=1), "array_in.csv:1:1:", "got JSON", "ends in .jsonl")
        self.file("paths.csv", table({**row, "text": f"C:\\new\\{index}.txt"} for index, row in enumerate(given)))
        self.file("spaced_labels.csv", table({**row, "label": " " + row["label"]} for row in given), "valid.jsonl:1:",
                  "in spaces or capital letters alone")
        self.file("float_labels.csv", table({**row, "label": str(index / 7)} for index, row in enumerate(given)),
                  "valid.jsonl:1:", "got 'pos'", "text-regression")
        self.file("both_labels.csv", "text,label,labels\na,x,y\n", "both_labels.csv:1:", "one of 'label' and 'labels'")
        self.file("text_twice.csv", "Text,TEXT,label\na,b,x\n", "text_twice.csv:1:", "each column once",
                  "'Text', 'TEXT', 'label'")
        for name, row, *said in (
                ("too_many", "the film, good,pos", ":42: expected 2 fields", "got 3", "must be in quotes"),
                ("too_few", "the film", ":42: expected 2 fields", "got 1"),
                ("quote_inside", 'a 5" film,pos', ":42:4: field 1", "write a quote that belongs to the text as two"),
                ("quote_after", '"good" film,pos', ":42:7: field 1", "after the closing quote", "as two"),
                ("quote_open", '"good film,pos', ":42:1: field 1", "a closing quote, got none", "as two"),
                ("comment_row", "# the end", ":42: expected 2 fields", "a comment", "remove it"),
                ("blank_label", "good film,  ", ":42: label: expected a label, got spaces alone"),
                ("no_label", "good film,", ":42: label: expected a label", "remove it")):
            self.file(f"{name}.csv", table(given) + row + "\n", f"{name}.csv{said[0]}", *said[1:])
        self.file("header_alone.csv", "text,label\n", "header_alone.csv:", "expected rows", "a header row alone")
        self.file("numbers.csv", "text;label\n" + "a;0.5\nb;1.5\n" * 8, validation="numbers.csv", task="text-regression")
        self.file("decimal_comma.csv", "text;label\na;0,5\n" * 1, "decimal_comma.csv:2:", "'0,5'", "decimal point",
                  validation="numbers.csv", task="text-regression")

    def json_files(self):
        given = rows()
        lines = json_lines(given)
        whole = json.dumps(given)
        self.file("capitals.jsonl", json_lines({"Text": row["text"], "LABEL": row["label"]} for row in given))
        self.file("indented.json", json.dumps(given, indent=2))
        self.file("array.json", whole)
        self.file("objects.json", "".join(json.dumps(row, indent=1) + "\n" for row in given))
        self.file("wrapped.json", json.dumps({"data": given}, indent=1), "wrapped.json:1:", "expected a field 'text'",
                  "got 'data'", "the rows in 'data' alone", "name the field")
        self.file("array_a_line.jsonl", "".join(f"[{json.dumps(row)}]\n" for row in given), "array_a_line.jsonl:2:1:",
                  "one object a line")
        self.file("targets.jsonl", json_lines({"text": row["text"], "target": row["label"]} for row in given),
                  "targets.jsonl:1:", "got 'target', 'text'", "name the field of the label 'label'")
        self.file("other_names.jsonl", json_lines({"utterance": row["text"], "label": "x"} for row in given),
                  "other_names.jsonl:1:", "got 'label', 'utterance'", "name the field of the text 'text'")
        self.file("sentence.jsonl", json_lines({"Sentence": row["text"], "label": row["label"]} for row in given))
        self.file("columns.json", json.dumps({name: {index: row[name] for index, row in enumerate(given)}
                                              for name in ("text", "label")}),
                  "columns.json:1: text: expected a string, got an object", "orient='records', lines=True")
        self.file("table_in.jsonl", table(given), "table_in.jsonl:1:1:", "'text,label'", "CSV", "ends in .csv")
        self.file("prose.jsonl", "the film was good\n", "prose.jsonl:1:1:", "'the film was good'", "write each row as")
        self.file("open_array.json", whole[:-1], "open_array.json:1:", "',' or ']'", "the end of the file")
        for name, row, *said in (
                ("cut", '{"text": "good', ":41:15:", "the text ends inside"),
                ("python", "{'text': 'good', 'label': 'pos'}", ":41:2:", "single quote", "double quotes"),
                ("not_a_number", '{"text": "good", "label": NaN}', ":41:27:", "NaN", "write null"),
                ("comma", '{"text": "good", "label": "pos",}', ":41:33:", "a comma before the end; remove it"),
                ("infinite", '{"text": "good", "label": -Infinity}', ":41:27:", "-Infinity", "write null"),
                ("line_comma", lines.split("\n")[0] + ",", ":41:", "a comma after the object; remove it"),
                ("slashes", "// the end", ":41:1:", "a comment", "remove it"),
                ("hash", "# the end", ":41:1:", "a comment", "remove it"),
                ("bare_names", '{text: "good"}', ":41:2:", "a name without quotes"),
                ("curled", '{“text”: “good”}', ":41:2:", "a typographic quote"),
                ("path", '{"text": "C:\\Users", "label": "pos"}', ":41:14:", "a backslash as two"),
                ("inner_quote", '{"text": "a "good" film"}', ":41:14:", "write a quote as"),
                ("real_label", '{"text": "good", "label": 0.5}', ":41: label:", "got the number 0.5"),
                ("no_text", '{"label": "pos"}', ":41: expected a field 'text'", "got 'label'"),
                ("null_text", '{"text": null, "label": "pos"}', ":41: text: expected a string, got null", "remove it"),
                ("number_text", '{"text": 7, "label": "pos"}', ":41: text: expected a string, got the integer 7"),
                ("list_text", '{"text": ["a"], "label": "pos"}', ":41: text: expected a string, got an array"),
                ("object_text", '{"text": {"a": 1}, "label": "pos"}', ":41: text: expected a string, got an object"),
                ("null_label", '{"text": "good", "label": null}', ":41: expected a field 'label'", "remove it"),
                ("array_row", '["good", "pos"]', ":41: expected a JSON object, got an array", "write each row as")):
            self.file(f"{name}.jsonl", lines + row + "\n", f"{name}.jsonl{said[0]}", *said[1:])
        for name, labels in (("booleans", (True, False)), ("integers", (1, 0))):
            self.file(f"{name}.jsonl", json_lines({**row, "label": labels[row["label"] == "neg"]} for row in given),
                      validation=f"{name}.jsonl")

    def no_text_files(self):
        self.file("empty.jsonl", "", "empty.jsonl:1: expected rows", "no bytes")
        self.file("blank.csv", "\n\n", "blank.csv:1: expected rows", "empty lines")
        for name, content, what in (("table.parquet", b"PAR1", "Parquet"), ("rows.jsonl.gz", b"\x1f\x8b\x08", "gunzip"),
                                    ("rows.xlsx", b"PK\x03\x04", "Excel"), ("old.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".xls"),
                                    ("frame.csv", b"\x80\x04\x95", "a pickle of Python"), ("bz.jsonl", b"BZh9", "bunzip2"),
                                    ("array.csv", b"\x93NUMPY\x01", "NumPy"), ("rows.pdf", b"%PDF-1.5", "PDF")):
            self.file(name, content + bytes(range(256)), f"{name}:1:", "expected rows of text", what)
        link = self.data / "link.csv"
        link.unlink(missing_ok=True)
        link.symlink_to("gone/rows.csv")
        self.file("link.csv", None, "link.csv", "a link to gone/rows.csv", "does not exist")
        self.file("pointer.jsonl", POINTER, "pointer.jsonl:1:", "pointer of Git LFS", "git lfs pull")
        self.file("workbook.csv", b"PK\x03\x04" + bytes(range(256)), "workbook.csv:1:", "Excel", "save it as CSV")
        self.file("packed.jsonl", b"\x1f\x8b\x08" + bytes(range(256)), "packed.jsonl:1:", "gzip", "gunzip")
        self.file("nuls.csv", table(rows()).replace(" ", "\0"), "nuls.csv:2:", "got a NUL here", "damaged")
        self.file("ebcdic.csv", table(rows()).encode("cp037"), "ebcdic.csv:1:1:", "expected text in UTF-8", "do not tell")
        self.file("page.csv", "<!DOCTYPE html>\n<html></html>\n", "page.csv:1:", "HTML", "download the file again")
        self.file("rows.txt", json_lines(rows()), "rows.txt", ".jsonl", "rename the file")
        self.file("absent.csv", None, "absent.csv", "No such file")
        self.file("one_label.csv", table(row for row in rows() if row["label"] == "pos"), "one_label.csv:21:",
                  "at least two labels")
        (self.data / "strange.jsonl").write_text('{"text": "a", "label": "strange"}\n')
        self.file("known.jsonl", json_lines(rows()), "strange.jsonl:1: label", "(neg, pos), got 'strange'",
                  validation="strange.jsonl")
        (self.data / "folder.jsonl").mkdir(exist_ok=True)
        self.file("folder.jsonl", None, "folder.jsonl", "folder")

    # -- models -------------------------------------------------------------------------------------

    def tensors(self, vocabulary=len(VOCABULARY), prefix="bert."):
        draw = random.Random(3)
        shapes = {}
        def linear(name, out, into): shapes.update({name + ".weight": (out, into), name + ".bias": (out,)})
        def norm(name): shapes.update({name + ".weight": (HIDDEN,), name + ".bias": (HIDDEN,)})
        embeddings = prefix + "embeddings."
        shapes[embeddings + "word_embeddings.weight"] = (vocabulary, HIDDEN)
        shapes[embeddings + "position_embeddings.weight"] = (POSITIONS, HIDDEN)
        shapes[embeddings + "token_type_embeddings.weight"] = (2, HIDDEN)
        norm(embeddings + "LayerNorm")
        layer = prefix + "encoder.layer.0."
        for part in ("query", "key", "value"):
            linear(layer + "attention.self." + part, HIDDEN, HIDDEN)
        linear(layer + "attention.output.dense", HIDDEN, HIDDEN)
        norm(layer + "attention.output.LayerNorm")
        linear(layer + "intermediate.dense", INNER, HIDDEN)
        linear(layer + "output.dense", HIDDEN, INNER)
        norm(layer + "output.LayerNorm")
        linear(prefix + "pooler.dense", HIDDEN, HIDDEN)
        def values(shape): return [draw.gauss(0, 0.05) for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1))]
        return {name: (shape, [1.0] * HIDDEN if name.endswith("LayerNorm.weight") else values(shape))
                for name, shape in shapes.items()}

    @staticmethod
    def safetensors(tensors, dtype="F32"):
        def packed(values):
            if dtype == "BF16":
                return b"".join(struct.pack("<f", value)[2:] for value in values)
            if dtype == "F8_E4M3":
                return bytes(len(values))
            return struct.pack(f"<{len(values)}{ {'F16': 'e', 'F32': 'f', 'F64': 'd'}[dtype] }", *values)
        header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
        for name, (shape, values) in tensors.items():
            blob = packed(values)
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(blob)]}
            at += len(blob)
            blobs.append(blob)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + b"".join(blobs)

    def model(self, name, *said, files=None, without=(), vocabulary=VOCABULARY, warned="",
              task="text-classification", **config):
        """files: contents by name, in addition to those of every model."""
        folder = self.models / name
        folder.mkdir(parents=True, exist_ok=True)
        made = {"config.json": json.dumps({key: value for key, value in {**CONFIG, **config}.items()
                                           if value is not None}).encode(),
                "vocab.txt": "".join(word + "\n" for word in vocabulary).encode(),
                "tokenizer_config.json": b'{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}',
                "model.safetensors": self.safetensors(self.tensors()), **(files or {})}
        for file, content in made.items():
            if file not in without:
                (folder / file).write_bytes(content)
        regression = {"train": "numbers.csv", "validation": "numbers.csv"} if task == "text-regression" else {}
        self.cases.append(Case(f"model {name}", said, warned, model=name, task=task, **regression))

    def heads(self):
        body = self.tensors()
        def head(name, outputs, into=HIDDEN):
            return {name + ".weight": ((outputs, into), [0.1] * outputs * into), name + ".bias": ((outputs,), [0.0] * outputs)}
        def weights(*heads, **options):
            return {"model.safetensors": self.safetensors({**body, **{k: v for one in heads for k, v in one.items()}}, **options)}
        self.model("plain")
        self.model("half", files=weights(dtype="F16"))
        self.model("bfloat16", files=weights(dtype="BF16"))
        self.model("float64", files=weights(dtype="F64"))
        self.model("float8", "model.safetensors", "F8_E4M3", "not quantized", files=weights(dtype="F8_E4M3"))
        for prefix in ("module.", "_orig_mod.", "model."):
            wrapped = {prefix + name: tensor for name, tensor in body.items()}
            self.model("wrapped" + prefix.strip("._"), files={"model.safetensors": self.safetensors(wrapped)})
        self.model("threelabels", files=weights(head("classifier", 3)), warned="classifier.weight [3, 8]",
                   id2label={"0": "a", "1": "b", "2": "c"})
        self.model("regression", files=weights(head("classifier", 1)), warned="the body is loaded, and the head is new",
                   problem_type="regression")
        self.model("classifier", files=weights(head("classifier", 2)), warned="classifier.bias [2]", task="text-regression")
        self.model("otherhead", files=weights(head("classifier.dense", 8), head("classifier.out_proj", 2)),
                   warned="classifier.dense.weight [8, 8]")
        self.model("customhead", files=weights(head("regression_head.2", 1)), warned="regression_head.2.weight [1, 8]")
        self.model("pretraining", files=weights(head("cls.seq_relationship", 2)))
        bare = {"model.safetensors": self.safetensors(self.tensors(prefix=""))}
        self.model("bare", files=bare)

    def folders(self):
        whole = self.tensors()
        names = list(whole)
        shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
        index = json.dumps({"weight_map": {name: file for file, held in shards.items() for name in held}}).encode()
        parts = {file: self.safetensors({name: whole[name] for name in held}) for file, held in shards.items()}
        no_weights = ("model.safetensors",)
        self.model("sharded", files={**parts, "model.safetensors.index.json": index}, without=no_weights)
        self.model("lostshard", "model-00002-of-00002.safetensors is missing", "model.safetensors.index.json names",
                   "download it", files={**parts, "model.safetensors.index.json": index},
                   without=no_weights + ("model-00002-of-00002.safetensors",))
        self.model("brokenindex", "model.safetensors.index.json", "download it again",
                   files={"model.safetensors.index.json": b"{weight_map"}, without=no_weights)
        self.model("bin", "pytorch_model.bin", "no model.safetensors", "save_pretrained(",
                   files={"pytorch_model.bin": b"PK\x03\x04"}, without=no_weights)
        self.model("shardedbin", "pytorch_model.bin.index.json", "save_pretrained(",
                   files={"pytorch_model.bin.index.json": b"{}"}, without=no_weights)
        self.model("tensorflow", "tf_model.h5", "download", files={"tf_model.h5": b"x"}, without=no_weights)
        self.model("noweights", "no model.safetensors", "put config.json", without=no_weights)
        self.model("lfs", "model.safetensors is a pointer of Git LFS", "git lfs pull", files={"model.safetensors": POINTER})
        self.model("lfsvocabulary", "vocab.txt is a pointer of Git LFS", "git lfs pull", files={"vocab.txt": POINTER})
        self.model("page", "model.safetensors is a page of HTML", "download the file again",
                   files={"model.safetensors": b"<!DOCTYPE html>\n<html>" + b" " * 64})
        self.model("truncated", "truncated/model.safetensors", "bytes", "download the file again",
                   files={"model.safetensors": self.safetensors(whole)[:-64]})
        self.model("refused", "model.safetensors: expected safetensors, got text: 'Access to model", "download the file again",
                   files={"model.safetensors": b"Access to model x is restricted.\n"})
        self.model("torchsave", "model.safetensors is a file of torch.save", "save_pretrained()",
                   files={"model.safetensors": b"PK\x03\x04" + bytes(64)})
        self.model("othernames", "word_embeddings.weight' of shape", "is missing", "'gpt_neox.embeddings",
                   files={"model.safetensors": self.safetensors({name.replace("bert.", "gpt_neox."): tensor
                                                                 for name, tensor in whole.items()})})
        self.model("noconfig", "holds no config.json", without=("config.json",))
        self.model("adapter", "adapter_config.json", "merge", without=("config.json", *no_weights),
                   files={"adapter_config.json": b"{}"})
        self.model("novocabulary", "vocab.txt", "No such file", without=("vocab.txt",))
        self.model("notjson", "config.json", files={"config.json": b"{model_type: bert"})
        self.model("login", "config.json is a page of HTML", "download the file again",
                   files={"config.json": b"\n<!-- login -->\n<html><title>Sign in</title></html>"})
        self.model("nobytes", "model.safetensors", "the file is empty", "download the file again",
                   files={"model.safetensors": b""})
        self.model("links", "model.safetensors is a link to ../../blobs/4d", "cp -L", without=no_weights)
        link = self.models / "links" / "model.safetensors"
        link.unlink(missing_ok=True)
        link.symlink_to("../../blobs/4d")
        self.model("cached/snapshots/4d")
        self.cases.pop()
        self.cases.append(Case("model cached", ("cached/snapshots/4d", "link that folder"), model="cached"))

    def configurations(self):
        added = json.dumps({"[E1]": len(VOCABULARY), "[E2]": len(VOCABULARY) + 1}).encode()
        more = len(VOCABULARY) + 2
        weights = {"model.safetensors": self.safetensors(self.tensors(vocabulary=more))}
        self.model("nomodeltype", "config.json: model_type", 'BertForMaskedLM: add "model_type": "bert"', model_type=None,
                   architectures=["BertForMaskedLM"])
        self.model("unknowntype", "'t5'", "bert, ", "--trainer", model_type="t5")
        self.model("addedtokens", files={"added_tokens.json": added, **weights}, vocab_size=more)
        self.model("notresized", "vocab.txt", f"expected {len(VOCABULARY)} tokens", "and 2 added ones", RESIZE,
                   files={"added_tokens.json": added})
        self.model("othervocabulary", "vocab.txt", "got 4", "take the vocabulary that belongs to the model",
                   vocabulary=SPECIAL[:4])
        self.model("otherrows", "word_embeddings.weight", "correct config.json", files=weights)
        self.model("otherwidth", "model.safetensors", "by config.json", "correct config.json", hidden_size=12,
                   num_attention_heads=2)
        self.model("morelayers", "'bert.encoder.layer.1.attention", "is missing", "correct config.json",
                   num_hidden_layers=2)


def make(folder):
    """Writes everything below `folder`; the cases."""
    inputs = Inputs(folder)
    (inputs.data / "train.jsonl").write_text(json_lines(rows()))
    (inputs.data / "valid.jsonl").write_text(json_lines(rows(8, seed=2)))
    for part in (inputs.encodings, inputs.other_scripts, inputs.tables, inputs.json_files, inputs.no_text_files, inputs.heads, inputs.folders,
                 inputs.configurations):
        part()
    return inputs.cases


if __name__ == "__main__":
    for one in make(pathlib.Path(sys.argv[1])):
        print(one.name, "trains" if not one.said else f"is refused: {' ... '.join(one.said)}", one.warned, sep="\t")
