// What the charts of the analysis share: the trials, which of them are shown, and what is asked.
import { useSignal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useEffect, useMemo, useRef } from "preact/hooks";
import { call, reconnects, type ApiError } from "../../api/call";
import type { Study } from "../../api/messages";
import { go, queryWord, queryWords, setQuery, studyPath } from "../../router";
import type { LiveReading, Reading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { markShown, readFilter, writeFilter, type Filter, type Ranges } from "./filter";
import { allColumns, readTable, tableOf, type Column, type Table } from "./table";

export interface View {
  study: Study;
  name: string;
  table: Table;
  columns: Column[];
  filter: Filter;
  mask: Uint8Array; // 1: shown
  shown: number;
  objective: Column;
  // Writes the ranges into the address.
  select: (ranges: Ranges) => void;
}

const Shared = createContext<View | undefined>(undefined);
export const ViewProvider = Shared.Provider;

export function useView(): View {
  const view = useContext(Shared);
  if (view === undefined) throw new Error("this chart is shown on the analysis page alone");
  return view;
}

// At most this often, all trials are read again while they change.
const REFRESH_MS = 5000;

// The trials that the conditions of the server hold for; read again as the study goes on.
export function useTable(study: Study, others: readonly string[]): LiveReading<Table> {
  const live = useStudy();
  const state = useSignal<Reading<Table>>({ data: undefined, error: undefined, loading: true });
  const manual = useSignal(0);
  const last = useRef({ key: "", at: 0 });
  const key = JSON.stringify([shapeOf(study), others]);
  useEffect(() => {
    const abort = new AbortController();
    const same = last.current.key === key;
    const wait = same ? Math.max(0, last.current.at + REFRESH_MS - Date.now()) : 0;
    if (!same) state.value = { data: undefined, error: undefined, loading: true };
    const timer = setTimeout(() => {
      last.current = { key, at: Date.now() };
      readTable(study, [...others], (request) => call("StudyService/QueryTrials", request, abort.signal)).then(
        (data) => {
          if (!abort.signal.aborted) state.value = { data, error: undefined, loading: false };
        },
        (error: ApiError) => {
          if (!abort.signal.aborted) state.value = { data: state.value.data, error, loading: false };
        },
      );
    }, wait);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, live.version.value, reconnects.value, manual.value]);
  return {
    ...state.value,
    reload: () => {
      last.current.at = 0;
      manual.value += 1;
    },
  };
}

// What the study's own columns, known before there are trials, cannot decide: the server does.
export function useOthers(study: Study): string[] {
  const columns = useMemo(() => allColumns(tableOf(study, [])), [shapeOf(study)]);
  return readFilter(queryWords("where"), columns).others;
}

// Changes where the study's columns do, and not as its trials go on.
function shapeOf(study: Study): string {
  return JSON.stringify([study.name, study.space, study.objectives]);
}

export function useMakeView(study: Study, table: Table): View {
  const columns = useMemo(() => allColumns(table), [table]);
  const words = queryWords("where");
  const filter = useMemo(() => readFilter(words, columns), [columns, words.join("\n")]);
  const { mask, shown } = useMemo(() => {
    const made = new Uint8Array(table.rows);
    return { mask: made, shown: markShown(table, columns, filter.ranges, made) };
  }, [table, columns, filter]);
  const metric = queryWord("objective");
  const objective = table.objectives.find(({ name }) => name === metric) ?? table.objectives[0];
  return useMemo(
    () => ({
      study,
      name: study.name ?? "",
      table,
      columns,
      filter,
      mask,
      shown,
      objective: objective ?? { name: "value", values: new Float64Array(table.rows).fill(Number.NaN), choices: undefined, log: false, whole: false, objective: true, minimized: true },
      select: (ranges) => setQuery({ where: writeFilter({ ...filter, ranges }, columns) }),
    }),
    [shapeOf(study), table, columns, filter, mask, shown, objective],
  );
}

// The address of the trials page with the same trials.
export function trialsAddress(view: View, extra: readonly string[] = []): string {
  const query = new URLSearchParams();
  for (const word of [...writeFilter(view.filter, view.columns), ...extra]) query.append("where", word);
  const text = query.toString();
  return `${studyPath(view.name, "trials")}${text === "" ? "" : `?${text}`}`;
}

export function openTrial(view: View, number: number): void {
  go(studyPath(view.name, "trials", number));
}

// The parameter that the address names with `word`; else the one at `place`.
export function useParameter(view: View, word: string, place: number): Column | undefined {
  const name = queryWord(word);
  const { parameters } = view.table;
  return parameters.find((column) => column.name === name) ?? parameters[Math.min(place, parameters.length - 1)];
}
