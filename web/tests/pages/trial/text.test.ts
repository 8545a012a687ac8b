import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { attributeJson, attributeWords, exactText, printable, readAttributes, repeatCommand, shellWord } from "../../../src/pages/trial/text";

describe("printable", () => {
  it("removes what a terminal would obey, and shows other control characters", () => {
    expect(printable("a \u001b[31mred\u001b[0m b")).toBe("a red b");
    expect(printable("\u001b]0;title\u0007x")).toBe("x");
    expect(printable("bell\u0007 nul\u0000 del\u007f c1\u009b")).toBe("bell␇ nul␀ del␡ c1�");
    expect(printable("tab\tline\n")).toBe("tab\tline\n");
  });

  it("keeps the last state of a progress bar", () => {
    expect(printable(" 10%\r 50%\r100%\r\ndone\r")).toBe("100%\ndone");
  });

  it("shows characters that turn text around", () => {
    expect(printable("a\u202eb")).toBe("a[U+202E]b");
  });
});

const HOSTILE = ["plain", "it's", 'say "no"', "$(rm -rf /)", "`id`", "a b", "", "new\nline", "esc\u001b[31m", "\\", "\\'\u0007", "ünï\u0085", "-x", "!!", "*", "~", "a=b;c", "\u202etfel\u202c"];

describe("shellWord", () => {
  it.each(HOSTILE)("is one word of a shell with the same text: %j", (text) => {
    const said = execFileSync("bash", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8", env: { ...process.env, LC_ALL: "C.UTF-8" } });
    expect(said).toBe(text);
  });

  it("has no hidden character", () => {
    for (const text of HOSTILE) expect(shellWord(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});

describe("repeatCommand", () => {
  it("has all values with all digits", () => {
    const params = { lr: { double_value: 0.00004024120066927 }, batch: { int_value: "8" }, "opt x": { string_value: "it's" }, amp: { bool_value: true }, cut: { null_value: null } };
    expect(repeatCommand("my study", { admission: true, params })).toBe(
      "hpo enqueue --study 'my study' amp=true batch=8 cut=null lr=4.024120066927e-5 'opt x=it'\\''s'",
    );
  });

  it("repeats how it was enqueued", () => {
    expect(repeatCommand("s", { forced_micro_batch: "4", params: {} })).toBe("hpo enqueue --study s --no-admission --micro-batch 4");
    expect(repeatCommand("s", { admission: true, demonstration: true, params: { "-x": { int_value: "1" } } })).toBe("hpo enqueue --study s --demonstration -- -x=1");
  });
});

describe("exactText", () => {
  it("takes the shorter way to write a number", () => {
    expect(exactText({ double_value: 0.001 })).toBe("0.001");
    expect(exactText({ double_value: 1e-5 })).toBe("1e-5");
    expect(exactText({ double_value: 100000 })).toBe("100000");
    expect(exactText({ int_value: "100000" })).toBe("100000");
    expect(exactText(undefined)).toBe("");
  });
});

describe("attributes", () => {
  it("are read whatever they hold", () => {
    const read = readAttributes({ "hpo.note": '"hi"', "hpo.tags": '["a","b"]', "hpo.retry_of": "17", mine: "{}" });
    expect(read).toEqual({ note: "hi", tags: ["a", "b"], retryOf: 17, own: [["mine", "{}"]] });
    expect(readAttributes({ "hpo.note": "broken{", "hpo.tags": "3" })).toEqual({ note: "", tags: [], retryOf: undefined, own: [] });
  });

  it("are shown without the quotes of a text, and written as JSON", () => {
    expect(attributeWords('"a text"')).toBe("a text");
    expect(attributeWords('{"a":1}')).toBe('{"a":1}');
    expect(attributeJson("3")).toBe("3");
    expect(attributeJson("a text")).toBe('"a text"');
  });
});
