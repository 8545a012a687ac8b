// Which part of the search space fits each GPU, by model, and what to cut.
import type { GetMemoryFitResponse, MemoryFitCount, Worker } from "../../api/messages";
import { int } from "../../api/values";
import { bytes, count, percent, plural } from "../../format/format";
import { Card, Scroll } from "../../parts/parts";
import type { LiveReading } from "../../state/reading";
import { gpuOf, type Gpu } from "./capacities";
import { ReadKnown } from "./known";
import { cutSentences, gpuTitle, isSplit, shareOf, statement } from "./fit";

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
            {gpu !== undefined && <Statement fit={fit} gpu={gpu} index={index} />}
            <GpuTable fit={fit} gpus={gpus} focus={focus} />
            {isSplit(fit) && <ModelTable fit={fit} gpus={gpus} />}
            <p class="hint">
              {basis(fit)} {policyWords(policy)}
            </p>
          </>
        )}
      </ReadKnown>
    </Card>
  );
}

function basis(fit: GetMemoryFitResponse): string {
  const total = plural(int(fit.configurations), "configuration");
  const parts = [fit.sampled ? `${total} were drawn from the search space.` : `The search space has ${total} that differ in memory.`];
  if (int(fit.unknown) > 0) parts.push(`Nothing is known of the memory of ${count(int(fit.unknown))} of them.`);
  if ((fit.parameters ?? []).length > 0) parts.push(`Memory depends on ${(fit.parameters ?? []).join(", ")}.`);
  return parts.join(" ");
}

function policyWords(policy: string): string {
  if (policy === "strict") return "This study's memory policy is strict: it runs configurations as they are written alone.";
  return policy === "off" ? "This study's memory policy is off: it starts all configurations as they are written." : "";
}

function Statement({ fit, gpu, index }: { fit: GetMemoryFitResponse; gpu: Gpu; index: number }) {
  const cuts = cutSentences(fit, index);
  return (
    <div class="statement">
      <h3>What fits {gpuTitle(gpu)}</h3>
      <p class="foreign">{statement(fit, index).join(" ")}</p>
      {cuts.length > 0 && (
        <>
          <h3>What to cut for {gpu.word}</h3>
          <ul>
            {cuts.map(({ when, text }) => (
              <li key={when}>
                <strong class="foreign">{text}</strong> <span class="hint">({when})</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function GpuTable({ fit, gpus, focus }: { fit: GetMemoryFitResponse; gpus: readonly Gpu[]; focus: number }) {
  const split = isSplit(fit);
  return (
    <Scroll label="What fits each GPU">
      <table>
        <thead>
          <tr>
            <th scope="col">GPU</th>
            <th scope="col" class="number">
              Usable
            </th>
            <th scope="col">Fit as written</th>
            {split && <th scope="col">Fit with smaller micro-batches</th>}
            <th scope="col">What to cut</th>
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
              <td class="cuts">
                {cutSentences(fit, index).map(({ when, text }) => (
                  <span key={when} class="line foreign" title={when}>
                    {text}
                  </span>
                ))}
                {cutSentences(fit, index).length === 0 && <span class="hint">{shareOf(row.planned).misfits === 0 ? "nothing: all fit" : "no single cut helps"}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function ShareCell({ counts }: { counts: MemoryFitCount | undefined }) {
  const { fits, misfits, share } = shareOf(counts);
  if (fits + misfits === 0) return <span class="hint">unknown</span>;
  return (
    <>
      <span class="state">
        {percent(share)} <small>({count(fits)})</small>
      </span>
      <Bar share={share} label={`${percent(share)} fit`} />
    </>
  );
}

function Bar({ share, label }: { share: number; label: string }) {
  return (
    <svg class="fitbar" role="img" aria-label={label} viewBox="0 0 100 6" preserveAspectRatio="none">
      <rect x="0" y="0" width={Math.round(share * 100)} height="6" />
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
              Required, smallest to largest
            </th>
            <th scope="col" class="number">
              Smallest micro-batches
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
      <p class="hint">Of each GPU: the share that fits as written, then with smaller micro-batches.</p>
    </Scroll>
  );
}

function fitCell(literal: number, planned: number, total: number): string {
  if (total === 0) return "unknown";
  return planned === literal ? percent(literal / total) : `${percent(literal / total)} → ${percent(planned / total)}`;
}
