// Texts of programs and people, made harmless: for the reader's eyes and for a shell.
import type { Trial, Value } from "../../api/messages";
import { double, int } from "../../api/values";
import { valueText } from "../../format/domain";

// Orders to a terminal: colours, movements, titles.
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const BIDI = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

// The output of a program as a terminal would have left it: without colours, and of a line that was
// written again and again, such as a progress bar, the last state. Other control characters are
// shown as symbols.
export function printable(log: string): string {
  return log
    .replace(TERMINAL, "")
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.split("\r").findLast((part) => part !== "") ?? "")
    .join("\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (letter) => String.fromCharCode(0x2400 + letter.charCodeAt(0)))
    .replaceAll("\u007f", "\u2421")
    .replace(/[\u0080-\u009f]/g, "\ufffd")
    .replace(BIDI, (letter) => `[U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

// Control characters, and those that turn text around.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

// One word of a shell. Hidden characters are escaped, so that what is read is what runs, and pasting
// the word sends the terminal no orders; that form is understood by bash, zsh and ksh.
export function shellWord(text: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text)) return text;
  if (!HIDDEN.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/[\\']/g, "\\$&").replace(new RegExp(HIDDEN, "g"), (letter) => {
    const code = letter.charCodeAt(0);
    if (letter === "\n") return "\\n";
    if (letter === "\t") return "\\t";
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `$'${escaped}'`;
}

// A value with all of its digits; small numbers in the shorter way to write them.
export function exactText(value: Value | undefined): string {
  const plain = valueText(value);
  if (value?.double_value === undefined) return plain;
  const read = double(value.double_value);
  const exponential = read.toExponential();
  return Math.abs(read) < 1e-4 && exponential.length < plain.length ? exponential : plain;
}

// What runs the configuration of a trial once more.
export function repeatCommand(study: string, trial: Trial): string {
  const options: string[] = [];
  if (trial.demonstration) options.push("--demonstration");
  if (!trial.admission) options.push("--no-admission");
  if (int(trial.forced_micro_batch) > 0) options.push("--micro-batch", String(int(trial.forced_micro_batch)));
  const params = Object.entries(trial.params ?? {})
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => `${name}=${exactText(value)}`);
  // What follows -- is never an option, whatever a parameter is called.
  const before = params.some((word) => word.startsWith("-")) ? ["--"] : [];
  return ["hpo", "enqueue", "--study", study, ...options, ...before, ...params].map(shellWord).join(" ");
}

// A value that people read, of an attribute's JSON.
export function attributeWords(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : JSON.stringify(value);
  } catch {
    return json;
  }
}

// What was typed as an attribute's value: JSON, or else a text.
export function attributeJson(typed: string): string {
  try {
    JSON.parse(typed);
    return typed;
  } catch {
    return JSON.stringify(typed);
  }
}

// "hpo.note", "hpo.tags" and the user's own.
export function readAttributes(attributes: Record<string, string> | undefined): { note: string; tags: string[]; retryOf: number | undefined; own: [string, string][] } {
  const all = attributes ?? {};
  const parse = (key: string): unknown => {
    try {
      return JSON.parse(all[key] ?? "null");
    } catch {
      return undefined;
    }
  };
  const [note, tags, retry] = ["hpo.note", "hpo.tags", "hpo.retry_of"].map(parse);
  return {
    note: typeof note === "string" ? note : "",
    tags: Array.isArray(tags) ? tags.map(String) : [],
    retryOf: retry === null || retry === undefined || !Number.isInteger(Number(retry)) ? undefined : Number(retry),
    own: Object.entries(all).filter(([key]) => !key.startsWith("hpo.")),
  };
}
