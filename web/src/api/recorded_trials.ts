// The trials of an exported page as a table that is asked as the server's is (QueryTrials).
import { ApiError, type Request } from "./call";
import type { ColumnInfo, QueryTrialsResponse, Study, TableColumn } from "./messages";

// Values of all trials; undefined: it has none.
type Cells = (number | string | undefined)[];

interface Condition {
  name: string;
  comparison: string;
  value: string;
}

const CONDITION = /^([^!<>=]+)(!=|<=|>=|=|<|>)(.*)$/s;
const PAGE = 100;
const FIELDS = ["number", "state", "why", "value", "time"];

function invalid(message: string): ApiError {
  return new ApiError("INVALID_ARGUMENT", message);
}

export class RecordedTrials {
  private readonly numbers: number[];
  private readonly cells = new Map<string, Cells>();
  private readonly columns: ColumnInfo[];
  private readonly sequence: QueryTrialsResponse["sequence"];
  // The rows of the last question, since pages of one follow each other.
  private last = { key: "", rows: [] as number[] };

  constructor(pages: readonly QueryTrialsResponse[], study: Study | undefined) {
    this.numbers = pages.flatMap((page) => page.numbers ?? []);
    this.columns = pages.find((page) => page.all_columns !== undefined)?.all_columns ?? [];
    this.sequence = pages[0]?.sequence ?? study?.sequence ?? "0";
    let before = 0;
    for (const page of pages) {
      for (const column of page.columns ?? []) this.add(column, before);
      before += page.numbers?.length ?? 0;
    }
    this.cells.set("number", this.numbers);
  }

  query(request: Request<"StudyService/QueryTrials">): QueryTrialsResponse {
    const { where = [], sort = "", page_size = 0, page_token = "", from_end = false } = request;
    const size = page_size || PAGE;
    const rows = this.rowsOf(where, sort);
    const first = from_end ? Math.max(0, rows.length - size) : Math.min(rows.length, Number(page_token || 0));
    if (!Number.isInteger(first) || first < 0) throw invalid("page_token: expected one that this page gave");
    const end = Math.min(rows.length, first + size);
    const shown = rows.slice(first, end);
    const answer: QueryTrialsResponse = {
      total: String(this.numbers.length),
      matching: String(rows.length),
      position: String(first),
      sequence: this.sequence ?? "0",
      numbers: shown.map((row) => this.numbers[row] ?? 0),
      columns: this.asked(request.columns ?? []).map((name) => this.column(name, shown)),
    };
    if (first === 0) answer.all_columns = this.columns;
    if (end < rows.length) answer.next_page_token = String(end);
    // A page before the first one would repeat rows: it is the first one again.
    if (first > 0) answer.previous_page_token = String(Math.max(0, first - size));
    return answer;
  }

  // The numbers of the trials that all conditions hold for.
  matching(where: readonly string[]): Set<number> {
    return new Set(this.rowsOf(where, "").map((row) => this.numbers[row] ?? 0));
  }

  private add({ name = "", numbers, texts, indexes, missing = [] }: TableColumn, before: number): void {
    const cells = this.cells.get(name) ?? new Array<number | string | undefined>(this.numbers.length).fill(undefined);
    this.cells.set(name, cells);
    const gaps = new Set(missing);
    const count = numbers?.length ?? indexes?.length ?? 0;
    for (let row = 0; row < count; row += 1) {
      if (!gaps.has(row)) cells[before + row] = texts === undefined ? Number(numbers?.[row] ?? 0) : (texts[indexes?.[row] ?? 0] ?? "");
    }
  }

  // As the server finds a name: a field, a parameter, a metric. All columns without a value of any
  // trial are left out of a recording, but the study still has them.
  private find(name: string): Cells | undefined {
    const exact = this.cells.get(name) ?? this.cells.get(`param:${name}`) ?? this.cells.get(`metric:${name}`) ?? this.cells.get(name.replace(/^(param|metric):/, ""));
    if (exact !== undefined) return exact;
    const plain = name.replace(/^(param|metric):/, "");
    return this.columns.some((column) => column.name === plain || column.name === name) ? [] : undefined;
  }

  private asked(names: readonly string[]): readonly string[] {
    if (names.length > 0) return names;
    const parameters = this.columns.filter(({ kind }) => kind === "COLUMN_KIND_PARAMETER").map(({ name = "" }) => (name.startsWith("param:") ? name : `param:${name}`));
    return [...FIELDS, ...parameters];
  }

  private column(name: string, rows: readonly number[]): TableColumn {
    const cells = this.find(name);
    const values = rows.map((row) => cells?.[row]);
    const missing = values.flatMap((value, row) => (value === undefined ? [row] : []));
    const column: TableColumn = { name };
    if (missing.length > 0) column.missing = missing;
    if (!values.some((value) => typeof value === "string")) return { ...column, numbers: values.map((value) => Number(value ?? 0)) };
    const texts: string[] = [];
    const places = new Map<string, number>();
    const indexes = values.map((value) => {
      const text = String(value ?? "");
      const place = value === undefined ? 0 : (places.get(text) ?? texts.push(text) - 1);
      if (value !== undefined) places.set(text, place);
      return place;
    });
    return { ...column, texts, indexes };
  }

  private rowsOf(where: readonly string[], sort: string): number[] {
    const key = JSON.stringify([where, sort]);
    if (this.last.key === key) return this.last.rows;
    const tests = where.map((word) => this.test(word));
    const rows: number[] = [];
    for (let row = 0; row < this.numbers.length; row += 1) if (tests.every((holds) => holds(row))) rows.push(row);
    this.last = { key, rows: this.inOrder(rows, sort) };
    return this.last.rows;
  }

  private test(word: string): (row: number) => boolean {
    const { name, comparison, value } = readCondition(word);
    const cells = this.find(name);
    if (cells === undefined) throw invalid(`where: expected a parameter, a metric, number, state, value or time, got '${name}'`);
    const numeric = !cells.some((cell) => typeof cell === "string");
    const isTime = name === "started" || name === "ended";
    const number = value === "" ? Number.NaN : isTime ? secondsOf(value) : Number(value);
    const expected = isTime ? "a date or time, such as 2026-11-29 or 2026-11-29T15:04:05Z" : "a number";
    if (numeric && Number.isNaN(number)) throw invalid(`where: ${name}: expected ${expected}, got '${value}'`);
    const equality = comparison === "=" || comparison === "!=";
    if (!numeric && !equality) throw invalid(`where: ${name}: expected = or !=, as its values are texts, got ${comparison}`);
    const wanted = name === "state" ? value.toUpperCase() : value;
    return (row) => {
      const cell = cells[row];
      if (cell === undefined) return false;
      if (typeof cell === "string") return (cell === wanted) === (comparison === "=");
      return compare(cell, comparison, number);
    };
  }

  private inOrder(rows: number[], sort: string): number[] {
    const largestFirst = sort.startsWith("-");
    const name = sort.replace(/^-/, "") || "number";
    const cells = this.find(name);
    if (cells === undefined) throw invalid(`sort: expected a column, got '${name}'`);
    const sign = largestFirst ? -1 : 1;
    return rows.sort((a, b) => {
      const [left, right] = [cells[a], cells[b]];
      if (left === right) return a - b;
      if (left === undefined) return 1;
      if (right === undefined) return -1;
      if (typeof left === typeof right) return sign * (left < right ? -1 : 1);
      return sign * (typeof left === "number" ? -1 : 1);
    });
  }
}

function readCondition(word: string): Condition {
  const match = CONDITION.exec(word);
  if (match === null) throw invalid(`where: expected NAME=VALUE, or with !=, <, <=, > or >= between, got '${word}'`);
  const [, name = "", comparison = "", value = ""] = match;
  return { name: name.trim(), comparison, value: value.trim() };
}

// Since 1970, of a date or a time, which without an offset is UTC, or of seconds.
function secondsOf(text: string): number {
  if (!Number.isNaN(Number(text))) return Number(text);
  const isLocal = /^\S+[ T]\d\d:\d\d:\d\d(\.\d+)?$/.test(text);
  return Date.parse(isLocal ? `${text.replace(" ", "T")}Z` : text) / 1000;
}

function compare(left: number, comparison: string, right: number): boolean {
  switch (comparison) {
    case "=":
      return left === right;
    case "!=":
      return left !== right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    default:
      return left >= right;
  }
}
