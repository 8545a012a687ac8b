// The numbers of a chart as a folded table, for keyboards, screen readers and copying.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count, number } from "../../format/format";
import { Scroll } from "../../parts/parts";
import { LOOKS, StateBadge } from "../../parts/states";
import { Link, studyPath } from "../../router";
import { cell, type Column } from "./table";
import { trialsAddress, type View } from "./view";

export const MOST_NUMBERS = 50;

export interface NumbersProps {
  heads: readonly string[];
  // Numbers are set to the right.
  rows: () => (string | number | ComponentChildren)[][];
  total: number; // rows that there are
  more?: ComponentChildren; // where the rest is
}

// Its rows are made when it is opened.
export function Numbers({ heads, rows, total, more }: NumbersProps) {
  const [open, setOpen] = useState(false);
  const shown = open ? rows().slice(0, MOST_NUMBERS) : [];
  return (
    <details class="numbers" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers</summary>
      <Scroll label="Numbers of the chart">
        <table>
          <thead>
            <tr>
              {heads.map((head, column) => (
                <th key={column} scope="col">
                  <span class="clip">{head}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              <tr key={index}>
                {row.map((value, column) => (
                  <td key={column} class={typeof value === "number" ? "number" : undefined}>
                    {typeof value === "number" ? (Number.isNaN(value) ? "" : number(value)) : typeof value === "string" ? <span class="clip">{value}</span> : value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="hint">
        {total > MOST_NUMBERS && `${count(MOST_NUMBERS)} of ${count(total)} are listed. `}
        {more}
      </p>
    </details>
  );
}

export function TrialLink({ view, trial }: { view: View; trial: number }) {
  return <Link to={studyPath(view.name, "trials", trial)}>{trial}</Link>;
}

// The shown rows of the table, from the best; those without a value last.
export function bestRows(view: View, objective: Column = view.objective): number[] {
  const rows: number[] = [];
  for (let row = 0; row < view.table.rows; row += 1) if (view.mask[row] === 1) rows.push(row);
  const sign = objective.minimized ? 1 : -1;
  const key = (row: number) => {
    const value = objective.values[row] ?? Number.NaN;
    return Number.isNaN(value) ? Number.POSITIVE_INFINITY : sign * value;
  };
  return rows.sort((a, b) => key(a) - key(b) || a - b);
}

export function NumbersOfTrials({ view, columns = view.columns }: { view: View; columns?: readonly Column[] }) {
  return (
    <Numbers
      heads={["Trial", "State", ...columns.map(({ name }) => name)]}
      rows={() =>
        bestRows(view)
          .slice(0, MOST_NUMBERS)
          .map((row) => [
            <TrialLink view={view} trial={view.table.numbers[row] ?? 0} />,
            <StateBadge letter={view.table.letters[row] ?? LOOKS.Q.letter} />,
            ...columns.map((column) => cell(column, row) ?? ""),
          ])
      }
      total={view.shown}
      more={<Link to={trialsAddress(view)}>All of them on the trials page</Link>}
    />
  );
}
