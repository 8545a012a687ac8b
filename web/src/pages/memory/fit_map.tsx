// Which part of the search space fits each GPU, by model, and what to cut.
import type { GetMemoryFitResponse, MemoryFitCount, MemoryFitGpu, Worker } from "../../api/messages";
import { int } from "../../api/values";
import { bytes, count, percent, plural } from "../../format/format";
import { Card, Scroll } from "../../parts/parts";
import type { LiveReading } from "../../state/reading";
import { gpuOf, type Gpu } from "./capacities";
import { ReadKnown } from "./known";
import { cutsOf, gpuTitle, isSplit, noCutSentence, shareOf, statement, type Cut } from "./fit";

export interface FitProps {
  reading: LiveReading<GetMemoryFitResponse>;
  workers: readonly Worker[];
  focus: number;
  policy: string; // of the study's memory
}

export function FitMap({ reading, workers, focus, policy }: FitProps) {
  // Of the answer, which may be of the choice before this one.
  const gpus = (reading.data?.gpus ?? []).map(({ capacity_bytes }) => gpuOf(int(capacity_bytes), workers));
  const index = gpus.findIndex(({ capacity }) => capacity === focus);
  const gpu = gpus[index];
  return (
    <Card title="What fits" class="fit">
      <ReadKnown reading={reading} what="what fits the GPUs">
        {(fit) => (
          <>
            {gpu !== undefined && <Statement fit={fit} gpu={gpu} index={index} policy={policy} />}
            <GpuTable fit={fit} gpus={gpus} focus={focus} />
            {isSplit(fit) && <ModelTable fit={fit} gpus={gpus} />}
            {[...basis(fit), ...terms(fit, policy)].map((sentences) => (
              <p key={sentences} class="hint">
                {sentences}
              </p>
            ))}
          </>
        )}
      </ReadKnown>
    </Card>
  );
}

function basis(fit: GetMemoryFitResponse): string[] {
  const total = plural(int(fit.configurations), "configuration");
  const parts = [fit.sampled ? `The figures are of ${total} that were drawn at random from the search space.` : `The search space has ${total} that differ in memory.`];
  if ((fit.parameters ?? []).length > 0) parts.push(`Memory depends on ${(fit.parameters ?? []).join(", ")}.`);
  return [parts.join(" ")];
}

const POLICIES: Record<string, string> = {
  strict: "The memory policy of this study is “strict”: it never splits a batch, so only the figures for the full batch apply.",
  off: "The memory policy of this study is “off”: it starts every configuration with the full batch, also those that do not fit.",
};

// What the words of the tables mean.
function terms(fit: GetMemoryFitResponse, policy: string): string[] {
  const sentences = ["Usable memory is the memory of the GPU less a small reserve that no trial may use."];
  if (isSplit(fit)) {
    sentences.push(
      "With the full batch, one forward and backward pass computes train.batch_size samples. With smaller micro-batches, several passes accumulate the gradient (gradient accumulation), and the effective batch size stays the same.",
    );
  }
  if ((fit.gpus ?? []).some(hasUnknown)) {
    sentences.push("Unknown (striped in the bars): no model of the memory, dry run or earlier trial says what the configuration requires on this GPU.");
  }
  return [sentences.join(" "), isSplit(fit) || policy === "off" ? (POLICIES[policy] ?? "") : ""].filter((text) => text !== "");
}

function hasUnknown({ literal, planned }: MemoryFitGpu): boolean {
  return shareOf(literal).unknown > 0 || shareOf(planned).unknown > 0;
}

function Statement({ fit, gpu, index, policy }: { fit: GetMemoryFitResponse; gpu: Gpu; index: number; policy: string }) {
  const cuts = cutsOf(fit, index);
  const none = noCutSentence(fit, index, policy);
  return (
    <div class="statement">
      <h3>What fits {gpuTitle(gpu)}</h3>
      <p class="foreign">{statement(fit, index).join(" ")}</p>
      {cuts.length > 0 && <h3>Which parameter to cut for {gpu.word}</h3>}
      {none !== "" && <p>{none}</p>}
      {cuts.length > 0 && (
        <ul>
          {cuts.map(({ goal, text }) => (
            <li key={goal}>
              {goal !== "" && `${goal.charAt(0).toUpperCase()}${goal.slice(1)}: `}
              <strong class="foreign">{text}</strong>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function GpuTable({ fit, gpus, focus }: { fit: GetMemoryFitResponse; gpus: readonly Gpu[]; focus: number }) {
  const split = isSplit(fit);
  const unknown = (fit.gpus ?? []).some(hasUnknown);
  return (
    <Scroll label="What fits each GPU">
      <table>
        <thead>
          <tr>
            <th scope="col">GPU</th>
            <th scope="col" class="number">
              Usable memory
            </th>
            <th scope="col">{split ? "Fit with the full batch" : "Fit"}</th>
            {split && <th scope="col">Fit with smaller micro-batches</th>}
            {unknown && (
              <th scope="col" class="number">
                Unknown
              </th>
            )}
            <th scope="col">Which parameter to cut</th>
          </tr>
        </thead>
        <tbody>
          {(fit.gpus ?? []).map((row, index) => (
            <tr key={index} class={gpus[index]?.capacity === focus ? "focus" : undefined}>
              <th scope="row">
                {gpus[index]?.word ?? bytes(int(row.capacity_bytes))}
                <small class="line">{gpus[index]?.gpus}</small>
              </th>
              <td class="number">{bytes(int(row.usable_bytes))}</td>
              <td>
                <ShareCell counts={row.literal} />
              </td>
              {split && (
                <td>
                  <ShareCell counts={row.planned} />
                </td>
              )}
              {unknown && <td class="number">{count(Math.max(shareOf(row.literal).unknown, shareOf(row.planned).unknown))}</td>}
              <td class="cuts">
                <CutCell row={row} cuts={cutsOf(fit, index)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function CutCell({ row, cuts }: { row: MemoryFitGpu; cuts: readonly Cut[] }) {
  const [literal, planned] = [shareOf(row.literal), shareOf(row.planned)];
  if (literal.misfits === 0) return <span class="hint">{literal.unknown > 0 ? "none: nothing is known not to fit" : "none: all fit"}</span>;
  const needless = planned.fits === planned.total;
  return (
    <>
      {needless && <span class="line hint">None is necessary with smaller micro-batches.</span>}
      {cuts.map(({ goal, action, text }) => (
        <span key={goal} class="line foreign" title={text}>
          {action} <span class="hint">{goal}</span>
        </span>
      ))}
      {cuts.length === 0 && !needless && <span class="hint">no cut of one parameter helps</span>}
    </>
  );
}

function ShareCell({ counts }: { counts: MemoryFitCount | undefined }) {
  const { fits, misfits, unknown, total } = shareOf(counts);
  if (unknown === total) return <span class="hint">unknown</span>;
  return (
    <>
      <span class="state">
        {percent(fits / total)} <small>({count(fits)})</small>
      </span>
      <Bar fits={fits / total} unknown={unknown / total} label={`${count(fits)} fit, ${count(misfits)} do not fit${unknown > 0 ? `, ${count(unknown)} are unknown` : ""}`} />
    </>
  );
}

// What fits is filled, what is unknown is striped, the rest does not fit.
function Bar({ fits, unknown, label }: { fits: number; unknown: number; label: string }) {
  const [from, to] = [100 * fits, 100 * (fits + unknown)];
  const stripes = Array.from({ length: Math.ceil((to - from) / 4) }, (_, index) => from + 4 * index);
  return (
    <svg class="fitbar" role="img" aria-label={label} viewBox="0 0 100 6" preserveAspectRatio="none">
      <rect x="0" y="0" width={from} height="6" />
      {stripes.map((x) => (
        <rect key={x} class="unknown" x={x} y="0" width={Math.min(1.6, to - x)} height="6" />
      ))}
    </svg>
  );
}

function ModelTable({ fit, gpus }: { fit: GetMemoryFitResponse; gpus: readonly Gpu[] }) {
  return (
    <Scroll label="What fits, by model">
      <table>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col" class="number">
              Configurations
            </th>
            <th scope="col" class="number">
              Required with the full batch
            </th>
            <th scope="col" class="number">
              At least, with smaller micro-batches
            </th>
            {gpus.map((gpu) => (
              <th key={gpu.capacity} scope="col" class="number">
                Fit {gpu.word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(fit.models ?? []).map((model) => {
            const total = int(model.configurations);
            return (
              <tr key={model.name}>
                <th scope="row" class="foreign">
                  {model.name}
                </th>
                <td class="number">{count(total)}</td>
                <td class="number">{model.known ? `${bytes(int(model.smallest_bytes))} to ${bytes(int(model.largest_bytes))}` : "unknown"}</td>
                <td class="number">{model.known ? bytes(int(model.smallest_planned_bytes)) : "unknown"}</td>
                {gpus.map((gpu, index) => (
                  <td key={gpu.capacity} class="number">
                    {model.known ? fitCell(int(model.literal_fits?.[index]), int(model.planned_fits?.[index]), total) : "unknown"}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="hint">Required memory is from the smallest to the largest configuration. Before an arrow: the share that fits with the full batch; behind it: with smaller micro-batches.</p>
    </Scroll>
  );
}

function fitCell(literal: number, planned: number, total: number): string {
  if (total === 0) return "unknown";
  return planned === literal ? percent(literal / total) : `${percent(literal / total)} → ${percent(planned / total)}`;
}
