// Columns of the table of trials: what they are called, and how their values are shown.
import type { ColumnInfo, QueryTrialsResponse, Study, TableColumn } from "../../api/messages";
import { double } from "../../api/values";
import { bytes, count, duration, number, time } from "../../format/format";
import { isPrunedWhy, PRUNED_WHY } from "../../format/pruned";
import { letterOf, type Letter } from "../../parts/states";
import type { PruneReason, TrialState } from "../../api/messages";

export type Group = "field" | "parameter" | "metric";
type Format = "state" | "why" | "message" | "number" | "count" | "bytes" | "duration" | "time" | "value";

export interface ColumnLook {
  name: string; // as a request has it
  label: string;
  group: Group;
  format: Format;
  hint: string; // what it is, for a tooltip
}

const FIELDS: Record<string, { label: string; format: Format; hint: string }> = {
  number: { label: "trial", format: "count", hint: "The trial's number" },
  state: { label: "state", format: "state", hint: "State of the trial" },
  why: { label: "why", format: "why", hint: "Why it was pruned, or how it failed" },
  message: { label: "message", format: "message", hint: "In a line how the trial ended, where it has no result" },
  value: { label: "value", format: "number", hint: "Value of the first objective" },
  time: { label: "time", format: "duration", hint: "How long it ran" },
  started: { label: "started", format: "time", hint: "When it started" },
  ended: { label: "ended", format: "time", hint: "When it ended" },
  attempts: { label: "attempts", format: "count", hint: "Number of attempts" },
  worker: { label: "worker", format: "value", hint: "Worker of its last attempt" },
  violation: { label: "violation", format: "number", hint: "How far it is from what the constraints allow; 0: feasible" },
  predicted_bytes: { label: "predicted memory", format: "bytes", hint: "Required memory that was predicted" },
  peak_bytes: { label: "peak memory", format: "bytes", hint: "The most memory that was used" },
  live_bytes: { label: "live peak", format: "bytes", hint: "The most memory that tensors held" },
  reserved_bytes: { label: "reserved peak", format: "bytes", hint: "The most memory that the allocator reserved" },
  device_bytes: { label: "device peak", format: "bytes", hint: "The most memory that the process held on the GPU" },
  limit_bytes: { label: "memory limit", format: "bytes", hint: "Memory that the trial was allowed" },
};

const GROUPS: Partial<Record<string, Group>> = { COLUMN_KIND_PARAMETER: "parameter", COLUMN_KIND_METRIC: "metric" };
const PREFIXES: Record<Group, string> = { field: "", parameter: "param:", metric: "metric:" };

function bare(name: string): string {
  return name.replace(/^(param|metric):/, "");
}

function groupOf(name: string, infos: readonly ColumnInfo[]): Group {
  if (name.startsWith("param:")) return "parameter";
  if (name.startsWith("metric:")) return "metric";
  const info = infos.find((one) => one.name === name);
  if (info !== undefined) return GROUPS[info.kind ?? ""] ?? "field";
  return name in FIELDS ? "field" : "parameter";
}

export function lookOf(name: string, infos: readonly ColumnInfo[], study?: Study): ColumnLook {
  const group = groupOf(name, infos);
  if (group !== "field") return { name, label: bare(name), group, format: group === "metric" ? "number" : "value", hint: `${group === "metric" ? "Metric" : "Parameter"} ${bare(name)}` };
  const field = FIELDS[name] ?? { label: name, format: "value" as const, hint: name };
  const metric = study?.objectives?.[0]?.metric;
  return { name, ...field, group, label: name === "value" && metric !== undefined ? `value (${metric})` : field.label };
}

// The same for "lr" and "param:lr", where nothing else is called lr.
export function keyOf(look: ColumnLook): string {
  return PREFIXES[look.group] + bare(look.name);
}

const FAILED = "state=failed";

export function defaultColumns(study: Study, where: readonly string[]): string[] {
  const others = (study.objectives ?? []).slice(1).map(({ metric }) => `metric:${metric}`);
  const parameters = (study.space?.parameters ?? []).map(({ name }) => `param:${name}`);
  // A parameter of that name hides the messages.
  const messages = where.includes(FAILED) && !parameters.includes("param:message") ? ["message"] : [];
  return ["state", ...messages, "value", ...others, "time", ...parameters];
}

export type Cell = number | string | undefined;

// Reads the cells of a column by row.
export function cellsOf(column: TableColumn | undefined): (row: number) => Cell {
  if (column === undefined) return () => undefined;
  const missing = new Set(column.missing ?? []);
  const texts = column.texts ?? [];
  if (texts.length > 0) return (row) => (missing.has(row) ? undefined : texts[column.indexes?.[row] ?? 0]);
  return (row) => (missing.has(row) || column.numbers?.[row] === undefined ? undefined : double(column.numbers[row]));
}

// The reason of a pruned trial, or the class of a failure.
export function whyText(why: string): string {
  return isPrunedWhy(why) ? PRUNED_WHY[why] : why.toLowerCase().replaceAll("_", " ");
}

export function cellText(look: ColumnLook, cell: Cell): string {
  if (cell === undefined) return "";
  if (typeof cell === "string") return look.format === "why" ? whyText(cell) : cell;
  switch (look.format) {
    case "bytes":
      return bytes(cell);
    case "duration":
      // Of an imported trial whose times are not known.
      return cell === 0 ? "unknown" : duration(cell);
    case "time":
      return time(cell * 1000);
    case "count":
      return count(cell);
    case "value":
      // A whole number may be a seed or a name: it is not grouped by thousands.
      return Number.isInteger(cell) && Math.abs(cell) < 1e15 ? String(cell) : number(cell);
    default:
      return number(cell);
  }
}

export function isNumeric(column: TableColumn | undefined): boolean {
  return (column?.texts ?? []).length === 0;
}

// How each row's state is shown. `why` and `violation` tell states apart that have one name.
export function lettersOf(answer: QueryTrialsResponse): (row: number) => Letter {
  const of = (name: string) => cellsOf(answer.columns?.find((column) => column.name === name));
  const [state, why, violation] = [of("state"), of("why"), of("violation")];
  return (row) =>
    letterOf(
      `TRIAL_STATE_${state(row) ?? "QUEUED"}` as TrialState,
      why(row) === undefined ? undefined : (`PRUNE_REASON_${why(row)}` as PruneReason),
      Number(violation(row) ?? 0),
    );
}
