// All trials of a query as a file: read page by page, written here.
import { call } from "../../api/call";
import type { Parameter, QueryTrialsRequest, QueryTrialsResponse, TableColumn } from "../../api/messages";
import { int, scalar, scalarText, type Scalar } from "../../api/values";
import { cellsOf, keyOf, type Cell, type ColumnLook } from "./columns";

const PAGE = 5000;

// The pages of a query, from its first trial on. Calls `onRead` with how many trials are there.
export async function readAll(
  query: QueryTrialsRequest,
  onRead: (read: number, of: number) => void,
  abort: AbortSignal,
): Promise<QueryTrialsResponse[]> {
  const { page_token: _token, from_end: _end, ...request } = query;
  const pages: QueryTrialsResponse[] = [];
  let token = "";
  let read = 0;
  do {
    const page = await call("StudyService/QueryTrials", { ...request, page_size: PAGE, ...(token === "" ? {} : { page_token: token }) }, abort);
    pages.push(page);
    read += page.numbers?.length ?? 0;
    onRead(read, int(page.matching));
    token = page.next_page_token ?? "";
  } while (token !== "");
  return pages;
}

function columnOf(page: QueryTrialsResponse, look: ColumnLook): TableColumn | undefined {
  return page.columns?.find((column) => column.name === look.name);
}

// A spreadsheet runs a text that begins like a formula, and trials' texts are from elsewhere.
function inert(text: string): string {
  return /^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
}

function quoted(cell: Cell): string {
  const text = cell === undefined ? "" : typeof cell === "string" ? inert(cell) : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// As RFC 4180 has it, a line for each trial. Numbers are as exact as the server has them; a text that
// begins with =, +, -, @ or a tab, and is no number, gets a ' before it.
export function csvOf(pages: readonly QueryTrialsResponse[], looks: readonly ColumnLook[]): string {
  const shown = looks.filter(({ name }) => name !== "number");
  const lines = [["number", ...shown.map(keyOf)].map(quoted).join(",")];
  for (const page of pages) {
    const cells = shown.map((look) => cellsOf(columnOf(page, look)));
    for (const [row, trial] of (page.numbers ?? []).entries()) {
      lines.push([trial, ...cells.map((cell) => cell(row))].map(quoted).join(","));
    }
  }
  return `${lines.join("\r\n")}\r\n`;
}

// The table has true, 8 and null of choices as texts: the choice that was meant.
function typed(parameter: Parameter | undefined, cell: Cell): Scalar | undefined {
  if (typeof cell === "number") return Number.isFinite(cell) ? cell : String(cell);
  if (cell === undefined) return undefined;
  const choices = (parameter?.domain?.categorical_domain?.choices ?? []).map(scalar).filter((choice) => scalarText(choice) === cell);
  return choices.length === 1 && choices[0] !== undefined ? choices[0] : cell;
}

// A list of objects: fields, and below them "params" and "metrics". What a trial does not have is
// left out.
export function jsonOf(pages: readonly QueryTrialsResponse[], looks: readonly ColumnLook[], parameters: readonly Parameter[]): string {
  const trials: string[] = [];
  for (const page of pages) {
    const columns = looks.map((look) => ({
      look,
      label: keyOf(look).replace(/^(param|metric):/, ""),
      cell: cellsOf(columnOf(page, look)),
    }));
    for (const [row, number] of (page.numbers ?? []).entries()) {
      // Without a prototype: a parameter may be called __proto__.
      const params = Object.create(null) as Record<string, Scalar>;
      const metrics = Object.create(null) as Record<string, Scalar>;
      const trial: Record<string, unknown> = { number };
      for (const { look, label, cell } of columns) {
        const parameter = look.group === "parameter" ? parameters.find(({ name }) => name === label) : undefined;
        const value = typed(parameter, cell(row));
        if (value === undefined) continue;
        if (look.group === "field") trial[label] = value;
        else (look.group === "parameter" ? params : metrics)[label] = value;
      }
      trials.push(JSON.stringify({ ...trial, params, metrics }));
    }
  }
  return `[\n${trials.join(",\n")}\n]\n`;
}

// A name that every file system takes.
export function fileName(study: string, kind: "csv" | "json"): string {
  const safe = study.replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 80);
  return `${safe === "" ? "study" : safe}-trials.${kind}`;
}

export function saveFile(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser reads it after this call.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
