// The out-of-memory frontier over two parameters, for GPUs that the reader chose.
import { useMemo } from "preact/hooks";
import type { GetMemoryFrontierResponse, Parameter, Study, Worker } from "../../api/messages";
import { gridOf } from "../../charts/frontier/grid";
import { valueText } from "../../format/domain";
import { plural } from "../../format/format";
import { Card, ErrorBox } from "../../parts/parts";
import { queryWord, setQuery } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { useSlowVersion } from "../../state/version";
import { gpuOf } from "./capacities";
import { FrontierChart } from "./frontier_chart";
import { ReadKnown, useKept } from "./known";
import { FrontierTable } from "./frontier_table";
import { chosenParams, comparedNames, marksOf, paramWord } from "./marks";

const POINTS = 16;
const MOST_MARKS = 1000;

export interface FrontierProps {
  study: Study;
  capacities: readonly number[];
  workers: readonly Worker[];
  focus: number;
  relevant: readonly string[]; // the parameters that memory depends on
}

export function FrontierCard(props: FrontierProps) {
  const { study, capacities } = props;
  const parameters = study.space?.parameters ?? [];
  const [x, y] = [queryWord("x"), queryWord("y")];
  const { params, problems } = chosenParams(parameters, queryWord);
  delete params[x];
  delete params[y];
  const reading = useKept(
    useReading(
      "AnalysisService/GetMemoryFrontier",
      {
        study: study.name ?? "",
        ...(x !== "" && { x }),
        ...(y !== "" && { y }),
        params,
        capacities: [...capacities],
        points: POINTS,
      },
      useSlowVersion(),
    ),
  );
  const chosen = parameters.map(({ name = "" }) => paramWord(name)).filter((word) => queryWord(word) !== "");
  const reset = () => setQuery(Object.fromEntries(["x", "y", ...chosen].map((word) => [word, ""])));
  const failed = reading.error !== undefined && reading.error.code !== "FAILED_PRECONDITION";
  return (
    <>
      {problems.length > 0 && (
        <p class="problem" role="alert">
          {problems.join(" ")}
        </p>
      )}
      {reading.data !== undefined && reading.error !== undefined && <ErrorBox error={reading.error} retry={reading.reload} />}
      {failed && (x !== "" || y !== "" || chosen.length > 0) && (
        <div>
          <button type="button" onClick={reset}>
            Reset the choices of the frontier
          </button>
        </div>
      )}
      {reading.data === undefined ? (
        <Card title="Out-of-memory frontier">
          <AxisForm x={x} y={y} parameters={parameters} />
          <ReadKnown reading={reading} what="the out-of-memory frontier">
            {() => null}
          </ReadKnown>
        </Card>
      ) : (
        <Frontier {...props} answer={reading.data} />
      )}
    </>
  );
}

function Frontier({ study, workers, focus, relevant, answer }: FrontierProps & { answer: GetMemoryFrontierResponse }) {
  const live = useStudy();
  const parameters = study.space?.parameters ?? [];
  const grid = useMemo(() => gridOf(answer, parameters), [answer]);
  const gpus = useMemo(() => grid.gpus.map(({ capacity }) => gpuOf(capacity, workers)), [grid]);
  const params = answer.params ?? {};
  const compared = comparedNames(grid, params, relevant, parameters);
  const all = queryWord("trials") === "all";
  const trials = useReading(
    "StudyService/QueryTrials",
    {
      study: live.name,
      sort: "-number",
      page_size: MOST_MARKS,
      columns: ["state", "why", "violation", ...[grid.x, grid.y, ...compared].map((name) => `param:${name}`)],
    },
    live.version,
  );
  const key = compared.join("\n");
  const marks = useMemo(
    () => (trials.data === undefined ? { shown: [], others: 0 } : marksOf(trials.data, grid, params, compared, all)),
    [trials.data, grid, key, all],
  );
  const index = Math.max(
    0,
    gpus.findIndex(({ capacity }) => capacity === focus),
  );
  return (
    <FrontierChart study={study.name ?? ""} grid={grid} gpus={gpus} focus={index} marks={marks} basis={answer.basis ?? ""}>
      <AxisForm x={grid.x} y={grid.y} parameters={parameters} />
      <OtherParameters answer={answer} parameters={parameters} relevant={relevant} />
      {marks.others > 0 && (
        <label class="inline">
          <input type="checkbox" checked={all} onChange={(event) => setQuery({ trials: event.currentTarget.checked ? "all" : "" })} />
          Also show {plural(marks.others, "trial")} with other values of {compared.join(", ")}
        </label>
      )}
      <FrontierTable grid={grid} gpus={gpus} />
    </FrontierChart>
  );
}

function AxisForm({ x, y, parameters }: { x: string; y: string; parameters: readonly Parameter[] }) {
  const names = parameters.map(({ name = "" }) => name);
  const choose = (axis: "x" | "y", name: string) => {
    const other = axis === "x" ? y : x;
    // The axes change places where one takes the other's parameter.
    const words = { x, y, [axis]: name };
    if (name === other) words[axis === "x" ? "y" : "x"] = axis === "x" ? x : y;
    setQuery(words);
  };
  return (
    <form class="form" onSubmit={(event) => event.preventDefault()}>
      {(["x", "y"] as const).map((axis) => (
        <label key={axis}>
          {axis === "x" ? "Horizontal axis" : "Vertical axis"}
          <select value={axis === "x" ? x : y} onChange={(event) => choose(axis, event.currentTarget.value)}>
            {(axis === "x" ? x : y) === "" && <option value="">largest effect on memory</option>}
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ))}
    </form>
  );
}

// The values that all cells share, first of the parameters that memory depends on.
function OtherParameters({ answer, parameters, relevant }: { answer: GetMemoryFrontierResponse; parameters: readonly Parameter[]; relevant: readonly string[] }) {
  const others = parameters.filter(({ name = "" }) => answer.params?.[name] !== undefined && name !== answer.x && name !== answer.y);
  const first = others.filter(({ name = "" }) => relevant.length === 0 || relevant.includes(name));
  const rest = others.filter((parameter) => !first.includes(parameter));
  const field = (parameter: Parameter) => <ParameterField key={parameter.name} parameter={parameter} value={valueText(answer.params?.[parameter.name ?? ""])} />;
  return (
    <>
      {first.length > 0 && (
        <fieldset>
          <legend>Values of the other parameters</legend>
          <div class="form">{first.map(field)}</div>
        </fieldset>
      )}
      {rest.length > 0 && (
        <details>
          <summary>Parameters that memory does not depend on</summary>
          <div class="form">{rest.map(field)}</div>
        </details>
      )}
    </>
  );
}

function ParameterField({ parameter, value }: { parameter: Parameter; value: string }) {
  const name = parameter.name ?? "";
  const choices = parameter.domain?.categorical_domain?.choices?.map(valueText);
  const choose = (text: string) => setQuery({ [paramWord(name)]: text });
  return (
    <label>
      <span class="foreign">{name}</span>
      {choices !== undefined ? (
        <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : (
        <input value={value} inputMode="decimal" size={9} onChange={(event) => choose(event.currentTarget.value.trim())} />
      )}
    </label>
  );
}
