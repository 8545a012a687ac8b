// The trials of a study as a table that the server sorts, filters and pages. All that is chosen is in
// the address.
import { useRef } from "preact/hooks";
import type { ColumnInfo, QueryTrialsResponse, Study } from "../../api/messages";
import type { PageProps } from "../../lazy";
import { int } from "../../api/values";
import { count } from "../../format/format";
import { Empty, ErrorBox, Loading } from "../../parts/parts";
import { go, place, setQuery, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import "../../style/trials.css";
import { ColumnChooser } from "./chooser";
import { defaultColumns } from "./columns";
import { Exporter } from "./exporter";
import { Filters } from "./filters";
import { errorPlace, FEWEST_COMPARED, LAST, positionText, readState, SIZES, sizeWord, tableRequest, type TableState } from "./query";
import { TrialTable } from "./table";

export function Trials(_: PageProps) {
  const study = useStudy().study.value;
  return study === undefined ? null : <Table study={study} />;
}

// The last answer for `key`, while the next one is on its way.
function useKept<T>(key: string, data: T | undefined): T | undefined {
  const kept = useRef<{ key: string; data: T } | undefined>(undefined);
  if (data !== undefined) kept.current = { key, data };
  return kept.current?.key === key ? kept.current.data : undefined;
}

// The columns that there are. They come with first pages alone.
function useColumnInfos(study: string, answer: QueryTrialsResponse | undefined, onFirstPage: boolean): readonly ColumnInfo[] {
  const first = useReading("StudyService/QueryTrials", onFirstPage ? undefined : { study, columns: ["number"], page_size: 1 });
  return useKept(study, answer?.all_columns ?? first.data?.all_columns) ?? [];
}

function Table({ study }: { study: Study }) {
  const live = useStudy();
  const state = readState(place.value.query);
  const isDefault = state.columns.length === 0;
  const columns = isDefault ? defaultColumns(study, state.where) : state.columns;
  const request = tableRequest(live.name, state, columns);
  const reading = useReading("StudyService/QueryTrials", request, live.version);
  const answer = useKept(live.name, reading.data);
  const infos = useColumnInfos(live.name, answer, state.page === "" && state.where.length === 0);
  const { error } = reading;
  const about = error === undefined ? "" : errorPlace(error.message);
  return (
    <section class="card" aria-label="Trials">
      <Filters study={live.name} state={state} infos={infos} problem={about === "where" ? (error?.message ?? "") : ""} />
      <div class="buttons toolbar">
        <ColumnChooser study={study} infos={infos} columns={columns} isDefault={isDefault} />
        <Exporter study={study} request={request} columns={columns} infos={infos} />
        <span class="space" />
        <Comparison study={live.name} picked={state.picked} />
      </div>
      {error !== undefined && about !== "" && about !== "where" && <Problem error={error} about={about} reload={reading.reload} />}
      {answer !== undefined ? (
        <>
          <Pages answer={answer} state={state} />
          {(answer.numbers ?? []).length > 0 ? (
            <TrialTable study={study} state={state} answer={answer} columns={columns} infos={infos} busy={reading.data === undefined} />
          ) : (
            <NoRows total={int(answer.total)} />
          )}
        </>
      ) : (
        error === undefined && <Loading what="the trials" />
      )}
    </section>
  );
}

function Problem(props: { error: Parameters<typeof ErrorBox>[0]["error"]; about: string; reload: () => void }) {
  if (props.about === "page") return <ErrorBox error={props.error} retry={() => setQuery({ page: "" })} />;
  return (
    <>
      <ErrorBox error={props.error} retry={props.reload} />
      {props.error.code === "INVALID_ARGUMENT" && (
        <button type="button" onClick={() => setQuery({ column: [], sort: "", page: "" })}>
          Default columns and order
        </button>
      )}
    </>
  );
}

function NoRows({ total }: { total: number }) {
  if (total === 0) return <Empty>This study has no trials yet. A worker that serves it starts the first one.</Empty>;
  return (
    <Empty>
      <p>None of {count(total)} trials matches the conditions.</p>
      <button type="button" onClick={() => setQuery({ where: [], page: "" })}>
        Remove all conditions
      </button>
    </Empty>
  );
}

function Comparison({ study, picked }: { study: string; picked: number[] }) {
  const few = picked.length < FEWEST_COMPARED;
  return (
    <span class="buttons">
      {picked.length > 0 && (
        <button type="button" class="quiet" onClick={() => setQuery({ pick: "" })}>
          Choose none
        </button>
      )}
      <button
        type="button"
        class={few ? "" : "main"}
        disabled={few}
        title={few ? "Choose 2 to 20 trials by the boxes in the table. They stay chosen on other pages." : undefined}
        onClick={() => go(`${studyPath(study, "compare")}?trials=${picked.join(",")}`)}
      >
        Compare{picked.length > 0 ? ` ${picked.length}` : ""}
      </button>
    </span>
  );
}

function Pages({ answer, state }: { answer: QueryTrialsResponse; state: TableState }) {
  const next = answer.next_page_token ?? "";
  const previous = answer.previous_page_token ?? "";
  const matching = int(answer.matching);
  const total = int(answer.total);
  return (
    <div class="buttons pages">
      <span role="status">
        {positionText(int(answer.position), (answer.numbers ?? []).length, matching)}
        {matching < total && <span class="hint"> ({count(total)} trials in all)</span>}
      </span>
      <span class="space" />
      <div class="buttons" role="group" aria-label="Pages">
        <button type="button" disabled={previous === ""} onClick={() => setQuery({ page: "" })}>
          First
        </button>
        <button type="button" disabled={previous === ""} onClick={() => setQuery({ page: previous })}>
          Previous
        </button>
        <button type="button" disabled={next === ""} onClick={() => setQuery({ page: next })}>
          Next
        </button>
        <button type="button" disabled={next === ""} onClick={() => setQuery({ page: LAST })}>
          Last
        </button>
      </div>
      <label class="inline">
        Rows
        <select value={state.size} onChange={(event) => setQuery({ size: sizeWord(Number(event.currentTarget.value)), page: "" })}>
          {SIZES.map((size) => (
            <option key={size} value={size}>
              {size}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
