// Trials over the frontier, and the choices of its parameters in the address.
import type { Parameter, QueryTrialsResponse, Value } from "../../api/messages";
import { scalar, scalarText } from "../../api/values";
import type { Mark } from "../../charts/frontier/draw";
import { placeOf, type Grid } from "../../charts/frontier/grid";
import { readValue } from "../../format/domain";
import { cellsOf, lettersOf } from "./rows";

// Before the name of a parameter in the address.
const PREFIX = "p.";

export interface Chosen {
  params: Record<string, Value>;
  problems: string[]; // of words that are no values
}

// What the address says of the parameters that are on no axis.
export function chosenParams(parameters: readonly Parameter[], word: (name: string) => string): Chosen {
  const chosen: Chosen = { params: {}, problems: [] };
  for (const parameter of parameters) {
    const name = parameter.name ?? "";
    const text = word(PREFIX + name);
    if (text === "") continue;
    try {
      chosen.params[name] = readValue(parameter, text);
    } catch (error) {
      chosen.problems.push((error as Error).message);
    }
  }
  return chosen;
}

export function paramWord(name: string): string {
  return PREFIX + name;
}

// The other parameters in which a trial must equal the frontier's to be shown on it: those that
// memory depends on; where that is not known, the choices.
export function comparedNames(grid: Grid, params: Record<string, Value>, relevant: readonly string[], parameters: readonly Parameter[]): string[] {
  const others = Object.keys(params).filter((name) => name !== grid.x && name !== grid.y);
  if (relevant.length > 0) return others.filter((name) => relevant.includes(name));
  const choices = parameters.filter(({ domain }) => domain?.categorical_domain !== undefined).map(({ name }) => name);
  return others.filter((name) => choices.includes(name));
}

export interface Marks {
  shown: Mark[];
  others: number; // on the chart's range, but with other values of the compared parameters
}

// Trials of equal values would hide each other: they are spread within the lower part of their cell.
// Where an axis has values between those of its cells, a mark stays at its own.
function spread(place: number, smooth: boolean, number: number, factor: number, low: number, high: number): number {
  if (smooth || Math.abs(place - Math.round(place)) > 1e-9) return place;
  const share = (number * factor) % 1;
  return place + low + share * (high - low);
}

export function marksOf(answer: QueryTrialsResponse, grid: Grid, params: Record<string, Value>, compared: readonly string[], all: boolean): Marks {
  const letters = lettersOf(answer);
  const xs = cellsOf(answer, `param:${grid.x}`);
  const ys = cellsOf(answer, `param:${grid.y}`);
  const columns = compared.map((name) => ({ wanted: params[name], cells: cellsOf(answer, `param:${name}`) }));
  const marks: Marks = { shown: [], others: 0 };
  (answer.numbers ?? []).forEach((number, row) => {
    const x = placeOf(grid.xs, xs[row]);
    const y = placeOf(grid.ys, ys[row]);
    const letter = letters[row];
    if (x === undefined || y === undefined || letter === undefined) return;
    const same = columns.every(({ wanted, cells }) => wanted !== undefined && String(cells[row] ?? "") === scalarText(scalar(wanted)));
    if (!same) marks.others += 1;
    if (!same && !all) return;
    marks.shown.push({ number, letter, x: spread(x, grid.smooth.x, number, 0.618034, -0.38, 0.38), y: spread(y, grid.smooth.y, number, 0.754878, -0.38, 0.08) });
  });
  return marks;
}
