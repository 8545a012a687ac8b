// What a study's trials say together: charts of the reader's choice over the trials of their choice.
import type { ComponentType } from "preact";
import type { Study } from "../../api/messages";
import { count, plural } from "../../format/format";
import type { PageProps } from "../../lazy";
import { Empty, Read } from "../../parts/parts";
import { Link, queryWord, queryWords, setQuery } from "../../router";
import { useStudy } from "../../state/study";
import { Curves } from "./curves";
import { Edf } from "./edf";
import { Importance } from "./importance";
import { Contour, Rank } from "./pairs";
import { Parallel } from "./parallel";
import { Hypervolume, Pareto } from "./pareto";
import { Slice } from "./slice";
import type { Table } from "./table";
import { TimelineChart } from "./timeline";
import { trialsAddress, useMakeView, useOthers, useTable, ViewProvider, type View } from "./view";
import "./analysis.css";

interface Chart {
  id: string;
  word: string;
  chart: ComponentType;
  half?: boolean; // two of them fit beside each other
  objectives?: number; // that it needs at least
}

const charts: Chart[] = [
  { id: "parallel", word: "Parallel coordinates", chart: Parallel },
  { id: "pareto", word: "Pareto front", chart: Pareto, half: true, objectives: 2 },
  { id: "hypervolume", word: "Hypervolume", chart: Hypervolume, half: true, objectives: 2 },
  { id: "importance", word: "Importance", chart: Importance, half: true },
  { id: "contour", word: "Contour", chart: Contour, half: true },
  { id: "slice", word: "Slices", chart: Slice },
  { id: "rank", word: "Rank", chart: Rank, half: true },
  { id: "edf", word: "Distribution", chart: Edf, half: true },
  { id: "curves", word: "Intermediate values", chart: Curves },
  { id: "timeline", word: "Timeline", chart: TimelineChart },
];

const usual = ["parallel", "importance", "contour", "slice", "pareto"];

// The charts that the address asks for; "none" where the reader put all away.
export function chosenCharts(words: string, known: readonly string[]): string[] {
  const asked = words === "" ? usual : words.split(".");
  return known.filter((id) => asked.includes(id));
}

export function Analysis(_: PageProps) {
  const study = useStudy().study.value;
  return study === undefined ? null : <OfStudy study={study} />;
}

function OfStudy({ study }: { study: Study }) {
  const others = useOthers(study);
  const reading = useTable(study, others);
  return (
    <>
      {reading.error && others.length > 0 && reading.data === undefined && (
        <div class="chips">
          {others.map((word) => (
            <Chip key={word} word={word} />
          ))}
        </div>
      )}
      <Read reading={reading} what="the trials">
        {(table) => <OfTrials study={study} table={table} />}
      </Read>
    </>
  );
}

function OfTrials({ study, table }: { study: Study; table: Table }) {
  const view = useMakeView(study, table);
  const known = charts.filter(({ objectives = 1 }) => table.objectives.length >= objectives);
  const chosen = chosenCharts(queryWord("charts"), known.map(({ id }) => id));
  if (table.total === 0) return <Empty>The study has no trials yet. They are analysed here as soon as there are some.</Empty>;
  return (
    <ViewProvider value={view}>
      <div class="bars">
        <div class="buttons charts" role="group" aria-label="Charts">
          {known.map(({ id, word }) => (
            <button key={id} type="button" aria-pressed={chosen.includes(id)} onClick={() => setQuery({ charts: toggled(chosen, id) })}>
              {word}
            </button>
          ))}
        </div>
        {table.objectives.length > 1 && (
          <label class="inline">
            Objective
            <select value={view.objective.name} onChange={(event) => setQuery({ objective: event.currentTarget.value })}>
              {table.objectives.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Conditions view={view} />
      {view.shown === 0 && (
        <Empty>
          <p>No trial meets these conditions.</p>
        </Empty>
      )}
      <div class="grid">
        {known
          .filter(({ id }) => chosen.includes(id))
          .map(({ id, chart: Shown, half }) => (
            <div key={id} class={half ? "half" : ""}>
              <Shown />
            </div>
          ))}
        {chosen.length === 0 && <Empty>Choose a chart above.</Empty>}
      </div>
    </ViewProvider>
  );
}

function toggled(chosen: readonly string[], id: string): string {
  const now = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id];
  if (now.length === 0) return "none";
  return now.join(".");
}

function Conditions({ view }: { view: View }) {
  const words = queryWords("where");
  const { table } = view;
  const newest = table.matching > table.rows ? `, the newest of ${count(table.matching)},` : "";
  return (
    <div class="chips" role="group" aria-label="Chosen trials">
      <span role="status">
        {words.length === 0 ? `All ${plural(table.rows, "trial")}${newest} are shown.` : `${count(view.shown)} of ${plural(table.total, "trial")} are shown:`}
      </span>
      {words.map((word) => (
        <Chip key={word} word={word} />
      ))}
      {words.length > 0 && (
        <button type="button" onClick={() => setQuery({ where: [] })}>
          Show all
        </button>
      )}
      <Link class="button" to={trialsAddress(view)}>
        {words.length === 0 ? "All trials as a table" : "These trials as a table"}
      </Link>
    </div>
  );
}

function Chip({ word }: { word: string }) {
  return (
    <span class="chip">
      <span class="clip mono" title={word}>
        {word}
      </span>
      <button type="button" class="quiet" aria-label={`Remove the condition ${word}`} onClick={() => setQuery({ where: queryWords("where").filter((one) => one !== word) })}>
        ✕
      </button>
    </span>
  );
}
