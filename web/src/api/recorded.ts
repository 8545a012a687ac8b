// Answers of an exported page (web/API.md, "An exported page"): what was recorded of one study, and
// its trials, which are sorted, filtered and paged here as the server does it.
import { ApiError, type Answer, type Method, type Request, type Source } from "./call";
import type { GetCurvesResponse, GetMemoryFitResponse, GetStudyResponse, GetTrialResponse, ListStudiesResponse, ListTrialsResponse, QueryTrialsResponse, Trial } from "./messages";
import { RecordedTrials } from "./recorded_trials";

export interface RecordedCall {
  method: string;
  request: unknown;
  answer: unknown;
}

export interface RecordedPage {
  recorded?: string; // when: ISO 8601
  calls: RecordedCall[];
  // Answers of QueryTrials with all columns, page after page by number.
  trials?: QueryTrialsResponse | QueryTrialsResponse[];
}

// What a request may leave out, and what it stands for then.
const USUAL: Record<string, Record<string, string>> = { "AnalysisService/GetImportance": { method: "IMPORTANCE_METHOD_PED_ANOVA" } };
// What does not decide which answer is meant: there is one for all amounts.
const AMOUNTS = new Set(["points", "count", "page_size", "view"]);

// A request without default values and amounts, its words in order: equal for equal requests.
export function canonical(method: string, request: unknown, firstMetric: string): string {
  const plain = withoutDefaults(request) as Record<string, unknown> | undefined;
  const full: Record<string, unknown> = { ...USUAL[method], ...plain };
  if (full["metric"] === firstMetric) delete full["metric"];
  for (const amount of AMOUNTS) delete full[amount];
  return JSON.stringify(sorted(full));
}

// 64-bit integers are texts or numbers, as it pleases who writes them.
function withoutDefaults(value: unknown): unknown {
  if (value === null || value === undefined || value === "" || value === 0 || value === "0" || value === false) return undefined;
  if (typeof value === "string" && value.endsWith("_UNSPECIFIED")) return undefined;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((one) => withoutDefaults(one) ?? null);
  if (typeof value !== "object") return value;
  const kept = Object.entries(value)
    .map(([name, one]) => [name, withoutDefaults(one)] as const)
    .filter(([, one]) => one !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, sorted(one)]),
  );
}

type MemoryRequest = Request<"AnalysisService/GetMemoryFrontier">;
type MemoryAnswer = Pick<GetMemoryFitResponse, "gpus" | "models">;

const NOT_THERE = "An exported page holds only what was recorded of its study; the server has the rest.";

function withGpus(answer: MemoryAnswer, places: readonly number[]): MemoryAnswer {
  const pick = <T>(values: readonly T[] | undefined) => places.map((place) => values?.[place]).filter((value) => value !== undefined);
  const models = answer.models?.map((model) => ({ ...model, literal_fits: pick(model.literal_fits), planned_fits: pick(model.planned_fits) }));
  return { ...answer, gpus: pick(answer.gpus), ...(models && { models }) };
}

export class Recorded implements Source {
  readonly live = false;
  readonly recorded_ms?: number;
  readonly study: string;
  private readonly firstMetric: string;
  private readonly answers = new Map<string, unknown>();
  private readonly trials: RecordedTrials;

  constructor(private readonly page: RecordedPage) {
    const found = page.calls.find(({ method }) => method === "StudyService/GetStudy")?.answer as GetStudyResponse | undefined;
    this.study = found?.study?.name ?? "";
    const recorded = Date.parse(page.recorded ?? "");
    if (!Number.isNaN(recorded)) this.recorded_ms = recorded;
    this.firstMetric = found?.study?.objectives?.[0]?.metric ?? "";
    for (const { method, request, answer } of page.calls) this.answers.set(this.key(method, request), answer);
    this.trials = new RecordedTrials([page.trials ?? []].flat(), found?.study);
  }

  async call<M extends Method>(method: M, request: Request<M>): Promise<Answer<M>> {
    return this.find(method, request) as Answer<M>;
  }

  private key(method: string, request: unknown): string {
    return `${method} ${canonical(method, request, this.firstMetric)}`;
  }

  private find(method: Method, request: unknown): unknown {
    if (method === "StudyService/QueryTrials") return this.trials.query(request as Request<"StudyService/QueryTrials">);
    const answer = this.answers.get(this.key(method, request));
    if (answer !== undefined) return answer;
    if (method === "StudyService/ListStudies") return this.studies();
    if (method === "StudyService/ListTrials") return this.list(request as Request<"StudyService/ListTrials">);
    if (method === "AnalysisService/GetCurves") return this.curves(request as Request<"AnalysisService/GetCurves">);
    if (method === "AnalysisService/GetMemoryFrontier" || method === "AnalysisService/GetMemoryFit") return this.memory(method, request as MemoryRequest);
    if (method === "FleetService/ListWorkers") return {};
    if (method === "StudyService/GetTrial") throw new ApiError("NOT_FOUND", `The details of this trial are not in the page. ${NOT_THERE}`);
    throw new ApiError("UNIMPLEMENTED", `This is not in the page. ${NOT_THERE}`);
  }

  private studies(): ListStudiesResponse {
    const found = this.page.calls.filter(({ method }) => method === "StudyService/GetStudy");
    return { studies: found.map(({ answer }) => (answer as GetStudyResponse).study ?? {}) };
  }

  // Of the GPUs that were recorded, those that are asked for, in their order.
  private memory(method: Method, { capacities = [], ...rest }: MemoryRequest): unknown {
    for (const call of this.page.calls) {
      if (call.method !== method) continue;
      const { capacities: _, ...recorded } = call.request as MemoryRequest;
      if (this.key(method, recorded) !== this.key(method, rest)) continue;
      const answer = call.answer as MemoryAnswer;
      const places = capacities.map((capacity) => (answer.gpus ?? []).findIndex((gpu) => Number(gpu.capacity_bytes) === Number(capacity)));
      if (places.every((place) => place >= 0)) return withGpus(answer, places);
    }
    throw new ApiError("UNIMPLEMENTED", `The memory of these GPUs and parameters is not in the page. ${NOT_THERE}`);
  }

  // Of the trials whose details were recorded.
  private list({ states = [], prune_reasons = [], page_size = 0, newest_first = false }: Request<"StudyService/ListTrials">): ListTrialsResponse {
    const trials = this.page.calls
      .filter(({ method }) => method === "StudyService/GetTrial")
      .map(({ answer }): Trial => (answer as GetTrialResponse).trial ?? {})
      .filter(({ state, prune_reason }) => (states.length === 0 || (state && states.includes(state))) && (prune_reasons.length === 0 || (prune_reason && prune_reasons.includes(prune_reason))))
      .sort((a, b) => (newest_first ? -1 : 1) * (Number(a.number ?? 0) - Number(b.number ?? 0)));
    return { trials: trials.slice(0, page_size || 100), total: String(trials.length) };
  }

  // Of the curves that were recorded for the metric, those of the trials that are asked for.
  private curves({ study, metric, numbers, where, count }: Request<"AnalysisService/GetCurves">): GetCurvesResponse {
    const recorded = this.answers.get(this.key("AnalysisService/GetCurves", { study, metric })) as GetCurvesResponse | undefined;
    if (recorded === undefined) throw new ApiError("UNIMPLEMENTED", `The curves of ${metric || "this metric"} are not in the page. ${NOT_THERE}`);
    const asked = (numbers ?? []).length > 0 ? new Set(numbers) : this.trials.matching(where ?? []);
    return { ...recorded, curves: (recorded.curves ?? []).filter((curve) => asked.has(curve.number ?? 0)).slice(0, count || 50) };
  }
}
