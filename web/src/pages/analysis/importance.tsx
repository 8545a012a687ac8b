// How much each parameter influences the objective, by both methods, with their uncertainty.
import { useCallback } from "preact/hooks";
import type { ApiError } from "../../api/call";
import type { GetImportanceResponse } from "../../api/messages";
import { double, int } from "../../api/values";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import { ChartFrame, type FrameKey } from "../../charts/frame";
import { fitText, FONT, textWidth, type Pen } from "../../charts/pen";
import { percent, plural } from "../../format/format";
import { ErrorBox, Loading } from "../../parts/parts";
import { useReading } from "../../state/reading";
import { useSlowVersion } from "../../state/version";
import { Numbers } from "./numbers";
import { useView } from "./view";

export interface Share {
  share: number;
  low: number;
  high: number;
}

export interface ImportanceRow {
  parameter: string;
  shares: (Share | undefined)[]; // of each method
}

// Parameters of both answers, by the larger of their shares.
export function importanceRows(answers: readonly (GetImportanceResponse | undefined)[]): ImportanceRow[] {
  const rows = new Map<string, ImportanceRow>();
  answers.forEach((answer, method) => {
    for (const { parameter = "", share, low, high } of answer?.parameters ?? []) {
      const row = rows.get(parameter) ?? { parameter, shares: answers.map(() => undefined) };
      row.shares[method] = { share: double(share), low: double(low), high: double(high) };
      rows.set(parameter, row);
    }
  });
  const largest = ({ shares }: ImportanceRow) => Math.max(...shares.map((one) => one?.share ?? 0));
  return [...rows.values()].sort((a, b) => largest(b) - largest(a));
}

const METHODS: { word: string; colour: string; shape: FrameKey["shape"] }[] = [
  { word: "PED-ANOVA: among the best trials", colour: "state-completed", shape: "square" },
  { word: "fANOVA: over the whole space", colour: "best", shape: "square" },
];

export function Importance() {
  const view = useView();
  const version = useSlowVersion();
  const request = { study: view.name, metric: view.objective.name };
  const ped = useReading("AnalysisService/GetImportance", { ...request, method: "IMPORTANCE_METHOD_PED_ANOVA" }, version);
  const fanova = useReading("AnalysisService/GetImportance", { ...request, method: "IMPORTANCE_METHOD_FANOVA" }, version);
  const rows = importanceRows([ped.data, fanova.data]);
  const trials = int(ped.data?.trials ?? fanova.data?.trials);
  const resamples = int(ped.data?.resamples ?? fanova.data?.resamples);
  return (
    <ChartFrame
      title={`Importance for ${view.objective.name}`}
      study={view.name}
      empty={rows.length === 0}
      keys={[...METHODS, { word: "5 % to 95 % of the resamples", colour: "text", shape: "dash" }]}
      note={
        rows.length > 0 && (
          <span>
            Of {plural(trials, "trial")}
            {resamples > 0 && `, ${plural(resamples, "resample")}`}; conditions of this page do not change it.
          </span>
        )
      }
    >
      <Problem errors={[ped.error, fanova.error]} some={rows.length > 0} retry={() => [ped, fanova].forEach(({ reload }) => reload())} />
      {rows.length > 0 ? <Bars rows={rows} /> : (ped.loading || fanova.loading) && <Loading what="the importances" />}
      {rows.length > 0 && (
        <Numbers
          heads={["Parameter", "PED-ANOVA", "from", "to", "fANOVA", "from", "to"]}
          rows={() =>
            rows.map(({ parameter, shares }) => [
              parameter,
              ...shares.flatMap((one) => (one === undefined ? ["", "", ""] : [percent(one.share), percent(one.low), percent(one.high)])),
            ])
          }
          total={rows.length}
        />
      )}
    </ChartFrame>
  );
}

// One method may have an answer where the other has none.
function Problem({ errors, some, retry }: { errors: (ApiError | undefined)[]; some: boolean; retry: () => void }) {
  const [first] = errors.filter((error) => error !== undefined);
  if (first === undefined) return null;
  if (first.code === "FAILED_PRECONDITION") return some ? <p class="hint foreign">{first.message}</p> : <p class="hint foreign">There are no importances yet: {first.message}</p>;
  return <ErrorBox error={first} retry={retry} />;
}

const ROW = 44;
const BAR = 13;

function Bars({ rows }: { rows: ImportanceRow[] }) {
  const key = JSON.stringify(rows);
  const draw = useCallback((pen: Pen, size: Size, colour: Colour) => drawBars(pen, size, rows, colour), [key]);
  const [first] = rows;
  return (
    <Canvas
      label={`Shares of ${plural(rows.length, "parameter")}; the largest is ${first?.parameter ?? "none"}. The numbers are below.`}
      height={rows.length * ROW + 30}
      draw={draw}
    />
  );
}

export function drawBars(pen: Pen, { width }: Size, rows: readonly ImportanceRow[], colour: Colour): void {
  const names = Math.min(width * 0.35, Math.max(...rows.map(({ parameter }) => textWidth(parameter))) + 8);
  const room = width - names - 56;
  const largest = Math.max(0.01, ...rows.flatMap(({ shares }) => shares.map((one) => Math.max(one?.share ?? 0, one?.high ?? 0))));
  const x = (share: number) => names + (share / largest) * room;
  pen.font = FONT;
  rows.forEach(({ parameter, shares }, index) => {
    const top = index * ROW + 6;
    pen.fillStyle = colour("text");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(fitText(parameter, names - 8), names - 8, top + BAR + 1);
    shares.forEach((one, method) => {
      if (one === undefined) return;
      const y = top + method * (BAR + 3);
      pen.fillStyle = colour(METHODS[method]?.colour ?? "text");
      pen.fillRect(names, y, Math.max(1, x(one.share) - names), BAR);
      drawWhisker(pen, x(one.low), x(one.high), y + BAR / 2, colour);
      pen.fillStyle = colour("soft");
      pen.textAlign = "left";
      pen.fillText(percent(one.share), Math.max(x(one.high), x(one.share)) + 7, y + BAR / 2);
    });
  });
  pen.strokeStyle = colour("soft");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(names + 0.5, 0);
  pen.lineTo(names + 0.5, rows.length * ROW);
  pen.stroke();
  pen.fillStyle = colour("soft");
  pen.textAlign = "center";
  pen.fillText("share of the objective's variation", names + room / 2, rows.length * ROW + 14);
}

// On a halo, so that it is seen within the bar and beside it.
function drawWhisker(pen: Pen, low: number, high: number, y: number, colour: Colour): void {
  for (const [name, width] of [["surface", 3.5], ["text", 1.3]] as const) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(low, y);
    pen.lineTo(high, y);
    for (const end of [low, high]) {
      pen.moveTo(end, y - 4);
      pen.lineTo(end, y + 4);
    }
    pen.stroke();
  }
}
