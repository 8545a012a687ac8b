// The rows of a page of trials.
import { useMemo } from "preact/hooks";
import type { ColumnInfo, QueryTrialsResponse, Study } from "../../api/messages";
import { int } from "../../api/values";
import { isPrunedWhy, prunedText } from "../../format/pruned";
import { isMinimized } from "../../format/study";
import { Scroll } from "../../parts/parts";
import { StateBadge, type Letter } from "../../parts/states";
import { go, Link, setQuery, studyPath } from "../../router";
import { cellsOf, cellText, isNumeric, lettersOf, lookOf, whyText, type Cell, type ColumnLook } from "./columns";
import { MOST_COMPARED, nextSort, sortedHow, withPicked, type TableState } from "./query";

export interface TableProps {
  study: Study;
  state: TableState;
  answer: QueryTrialsResponse;
  columns: readonly string[]; // that were chosen
  infos: readonly ColumnInfo[];
  busy: boolean;
}

interface ShownColumn {
  look: ColumnLook;
  numeric: boolean;
  cell: (row: number) => Cell;
}

// The chosen columns that the answer has: an older answer stays until the one for a new choice comes.
function shownColumns({ study, answer, columns, infos }: TableProps): ShownColumn[] {
  return columns.flatMap((name) => {
    const column = answer.columns?.find((one) => one.name === name);
    if (column === undefined || name === "number") return [];
    const look = lookOf(name, infos, study);
    return [{ look, numeric: look.format !== "time" && isNumeric(column), cell: cellsOf(column) }];
  });
}

export function TrialTable(props: TableProps) {
  const { study, state, answer, infos } = props;
  const columns = useMemo(() => shownColumns(props), [answer, infos, props.columns.join("\n")]);
  const best = study.best_trial === undefined ? -1 : int(study.best_trial);
  const picked = state.picked.join(",");
  // The study changes while its trials run, and the rows are many: they are made anew only where
  // they changed.
  const rows = useMemo(
    () => <Rows study={study.name ?? ""} answer={answer} columns={columns} best={best} picked={state.picked} />,
    [study.name, answer, columns, best, picked],
  );
  return (
    <Scroll label="Trials" class={props.busy ? "tall busy" : "tall"} busy={props.busy}>
      <table class="trials">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Chosen for the comparison</span>
            </th>
            <Heading look={lookOf("number", [])} numeric sort={state.sort} />
            {columns.map(({ look, numeric }) => (
              <Heading key={look.name} look={look} numeric={numeric} sort={state.sort} largestFirst={look.name === "value" && !isMinimized(study.objectives?.[0])} />
            ))}
          </tr>
        </thead>
        {rows}
      </table>
    </Scroll>
  );
}

interface RowsProps {
  study: string;
  answer: QueryTrialsResponse;
  columns: readonly ShownColumn[];
  best: number;
  picked: number[];
}

function Rows({ study, answer, columns, best, picked }: RowsProps) {
  const letters = lettersOf(answer);
  const why = cellsOf(answer.columns?.find(({ name }) => name === "why"));
  const open = (event: MouseEvent, trial: number) => {
    // A click on a control, or the end of selecting text, is not one on the row.
    const onControl = (event.target as Element).closest("a, button, input, label") !== null;
    if (!onControl && String(getSelection() ?? "") === "") go(studyPath(study, "trials", trial));
  };
  return (
    <tbody>
      {(answer.numbers ?? []).map((trial, row) => (
        <tr key={trial} class={trial === best ? "best row" : "row"} onClick={(event) => open(event, trial)}>
          <td>
            <Pick trial={trial} picked={picked} />
          </td>
          <td class="number">
            <Link to={studyPath(study, "trials", trial)}>{trial}</Link>
          </td>
          {columns.map((column) => (column.look.format === "state" ? stateCell(letters(row), trial === best, why(row)) : valueCell(column, row)))}
        </tr>
      ))}
    </tbody>
  );
}

function stateCell(letter: Letter, isBest: boolean, why: Cell) {
  return (
    <td key="state">
      <StateBadge letter={letter} word={typeof why === "string" && isPrunedWhy(why) ? prunedText(why) : undefined} />
      {isBest && <span class="hint"> best</span>}
      {letter === "F" && <span class="hint"> {whyText(String(why ?? ""))}</span>}
    </td>
  );
}

const LONGEST_PLAIN = 24;

function valueCell({ look, numeric, cell }: ShownColumn, row: number) {
  const text = cellText(look, cell(row));
  const kind = numeric ? "number" : look.format === "message" ? "said" : "";
  if (text.length <= LONGEST_PLAIN) {
    return (
      <td key={look.name} class={`${kind} foreign`}>
        {text}
      </td>
    );
  }
  return (
    <td key={look.name} class={kind}>
      <span class="clip" title={text}>
        {text}
      </span>
    </td>
  );
}

function Heading(props: { look: ColumnLook; numeric: boolean; sort: string; largestFirst?: boolean }) {
  const { look } = props;
  const how = sortedHow(props.sort, look.name);
  return (
    <th scope="col" class={props.numeric ? "number" : ""} aria-sort={how ?? "none"}>
      <button
        type="button"
        title={`${look.hint}. A click sorts by it; trials without a value come last.`}
        onClick={() => setQuery({ sort: nextSort(props.sort === "" ? "number" : props.sort, look.name, props.largestFirst ?? false), page: "" })}
      >
        <span class="clip">{look.label}</span>
        <span aria-hidden="true" class="direction">
          {how === "ascending" ? " ▲" : how === "descending" ? " ▼" : ""}
        </span>
      </button>
    </th>
  );
}

function Pick({ trial, picked }: { trial: number; picked: number[] }) {
  const on = picked.includes(trial);
  const full = !on && picked.length >= MOST_COMPARED;
  return (
    <input
      type="checkbox"
      aria-label={`Compare trial ${trial}`}
      title={full ? `At most ${MOST_COMPARED} trials are compared.` : undefined}
      disabled={full}
      checked={on}
      onChange={(event) => setQuery({ pick: withPicked(picked, trial, event.currentTarget.checked).join(",") })}
    />
  );
}
