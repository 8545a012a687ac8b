// A study's trials as columns of typed arrays, as the charts of the analysis take them.
import type { Answer, Request } from "../../api/call";
import type { Parameter, PruneReason, QueryTrialsResponse, Study, TableColumn, TrialState } from "../../api/messages";
import { double, int, scalar, scalarText } from "../../api/values";
import { isMinimized } from "../../format/study";
import { letterOf, type Letter } from "../../parts/states";

export interface Column {
  name: string; // as conditions have it
  values: Float64Array; // NaN: the trial has none; of choices their place in `choices`
  choices: string[] | undefined; // undefined: numbers
  log: boolean;
  whole: boolean; // whole numbers alone
  objective: boolean;
  minimized: boolean;
}

export interface Table {
  rows: number;
  numbers: Int32Array; // ascending
  letters: Letter[];
  parameters: Column[];
  objectives: Column[];
  total: number; // trials of the study
  matching: number; // of them, before the newest were taken
}

export const MOST_ROWS = 20_000;
// What servers of before 0.2 allow.
const SMALL_PAGE = 1000;

type Query = (request: Request<"StudyService/QueryTrials">) => Promise<Answer<"StudyService/QueryTrials">>;

// The newest trials that meet the conditions, page after page.
export async function readTable(study: Study, where: string[], query: Query, most = MOST_ROWS): Promise<Table> {
  const parameters = study.space?.parameters ?? [];
  const metrics = (study.objectives ?? []).map(({ metric = "" }) => metric);
  const request: Request<"StudyService/QueryTrials"> = {
    study: study.name ?? "",
    where,
    sort: "-number",
    columns: ["state", "why", "violation", ...parameters.map(({ name }) => `param:${name}`), ...metrics.map((name) => `metric:${name}`)],
    page_size: most,
  };
  const pages: QueryTrialsResponse[] = [];
  let rows = 0;
  let token = "";
  do {
    let page: QueryTrialsResponse;
    try {
      page = await query({ ...request, page_token: token });
    } catch (error) {
      if (request.page_size === SMALL_PAGE || !/^page_size\b/.test((error as Error).message)) throw error;
      request.page_size = SMALL_PAGE;
      continue;
    }
    pages.push(page);
    rows += page.numbers?.length ?? 0;
    token = page.next_page_token ?? "";
    if (token === "") break;
  } while (rows < most);
  return tableOf(study, pages, most);
}

// Of pages whose rows go from the newest trial to the oldest.
export function tableOf(study: Study, pages: readonly QueryTrialsResponse[], most = MOST_ROWS): Table {
  const rows = Math.min(most, pages.reduce((sum, page) => sum + (page.numbers?.length ?? 0), 0));
  const numbers = Int32Array.from(pages.flatMap((page) => page.numbers ?? []).slice(0, rows)).reverse();
  const text = (name: string) => gatherTexts(pages, name, rows);
  const [states, reasons] = [text("state"), text("why")];
  const violations = gather(pages, "violation", rows, undefined);
  const letters = states.map((state, row) =>
    letterOf(
      `TRIAL_STATE_${state ?? "QUEUED"}` as TrialState,
      reasons[row] === undefined ? undefined : (`PRUNE_REASON_${reasons[row]}` as PruneReason),
      violations[row] || 0,
    ),
  );
  const parameters = (study.space?.parameters ?? []).map((parameter) => parameterColumn(parameter, pages, rows));
  const objectives = (study.objectives ?? []).map(
    (objective): Column => ({
      name: objective.metric ?? "",
      values: gather(pages, `metric:${objective.metric ?? ""}`, rows, undefined),
      choices: undefined,
      log: false,
      whole: false,
      objective: true,
      minimized: isMinimized(objective),
    }),
  );
  return { rows, numbers, letters, parameters, objectives, total: int(pages[0]?.total), matching: int(pages[0]?.matching) };
}

function parameterColumn(parameter: Parameter, pages: readonly QueryTrialsResponse[], rows: number): Column {
  const name = parameter.name ?? "";
  const domain = parameter.domain;
  const choices = domain?.categorical_domain?.choices?.map((choice) => scalarText(scalar(choice)));
  return {
    name,
    values: gather(pages, `param:${name}`, rows, choices),
    choices,
    log: domain?.float_domain?.log === true || domain?.int_domain?.log === true,
    whole: domain?.int_domain !== undefined,
    objective: false,
    minimized: false,
  };
}

function find(page: QueryTrialsResponse, name: string): TableColumn | undefined {
  return page.columns?.find((column) => column.name === name);
}

// Calls `take` with the row of the whole table, which is upside down, and the row of the page.
function eachRow(pages: readonly QueryTrialsResponse[], name: string, rows: number, take: (row: number, column: TableColumn, at: number) => void): void {
  let before = 0;
  for (const page of pages) {
    const count = Math.min(page.numbers?.length ?? 0, rows - before);
    const column = find(page, name);
    if (column !== undefined) {
      const missing = new Set(column.missing ?? []);
      for (let at = 0; at < count; at += 1) if (!missing.has(at)) take(rows - 1 - before - at, column, at);
    }
    before += count;
  }
}

// Numbers, or places in `choices`, to which what an edit took out of the space is added.
function gather(pages: readonly QueryTrialsResponse[], name: string, rows: number, choices: string[] | undefined): Float64Array {
  const values = new Float64Array(rows).fill(Number.NaN);
  const places = new Map(choices?.map((choice, place) => [choice, place]));
  const placeOf = (word: string) => {
    let place = places.get(word);
    if (place === undefined) {
      place = choices?.push(word) ?? 0;
      place = Math.max(0, place - 1);
      places.set(word, place);
    }
    return place;
  };
  eachRow(pages, name, rows, (row, column, at) => {
    const written = column.texts === undefined ? undefined : (column.texts[column.indexes?.[at] ?? 0] ?? "");
    const value = column.numbers?.[at] ?? 0;
    if (choices !== undefined) values[row] = placeOf(written ?? String(value));
    else values[row] = written === undefined ? double(value) : Number(written);
  });
  return values;
}

function gatherTexts(pages: readonly QueryTrialsResponse[], name: string, rows: number): (string | undefined)[] {
  const texts = new Array<string | undefined>(rows).fill(undefined);
  eachRow(pages, name, rows, (row, column, at) => {
    texts[row] = column.texts?.[column.indexes?.[at] ?? 0];
  });
  return texts;
}

// Parameters, then objectives.
export function allColumns(table: Table): Column[] {
  return [...table.parameters, ...table.objectives];
}

// Whether the trial has ended with its result.
export function isFinal(letter: Letter | undefined): boolean {
  return letter === "C" || letter === "I";
}

// A value of the column as people read and conditions write it.
export function cell(column: Column, row: number): string | number | undefined {
  const value = column.values[row];
  if (value === undefined || Number.isNaN(value)) return undefined;
  return column.choices === undefined ? value : (column.choices[value] ?? "");
}
