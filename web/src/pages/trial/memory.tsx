// Memory of a trial by stage: what was allocated and reserved, and the peak, against the prediction
// and the limit.
import type { Attempt, MemoryRecord, Trial } from "../../api/messages";
import { int } from "../../api/values";
import { bytes, count, percent, plural } from "../../format/format";
import { Card, Figure, Scroll } from "../../parts/parts";
import { limitOf } from "./attempts";
import { isImported, recordNote } from "./words";

export function MemoryCard({ trial }: { trial: Trial }) {
  const reported = (trial.attempts ?? []).filter(({ memory, memory_records: records }) => memory !== undefined || (records ?? []).length > 0);
  return (
    <Card title="Memory by stage">
      {reported.length === 0 && <p class="hint">{isImported(trial) ? "It was imported: its memory was not measured here." : "No attempt has reported its memory."}</p>}
      {reported.map((attempt, index) => (
        <details key={int(attempt.number)} class="attempt" open={index === reported.length - 1}>
          <summary>
            Attempt {int(attempt.number)} on <span class="clip">{attempt.worker}</span>
          </summary>
          <Peaks attempt={attempt} />
          <Stages attempt={attempt} />
        </details>
      ))}
    </Card>
  );
}

// The most that an attempt used, of what is known: by the device, else reserved, else live.
export function peakOf(attempt: Attempt): number {
  const memory = attempt.memory;
  return int(memory?.device_peak_bytes) || int(memory?.reserved_peak_bytes) || int(memory?.live_peak_bytes);
}

function Peaks({ attempt }: { attempt: Attempt }) {
  const memory = attempt.memory ?? {};
  const [limit, peak] = [limitOf(attempt), peakOf(attempt)];
  const figures: [string, number, string][] = [
    ["Predicted", int(attempt.predicted_bytes), "before it started"],
    ["Live peak", int(memory.live_peak_bytes), (memory.peak_phase ?? "") === "" ? "tensors" : `tensors, in ${memory.peak_phase}`],
    ["Reserved peak", int(memory.reserved_peak_bytes), "by the allocator"],
    ["Device peak", int(memory.device_peak_bytes), "on the GPU"],
    ["Limit", limit, peak > 0 && limit > 0 ? `${percent(peak / limit)} of it used` : ""],
  ];
  return (
    <>
      <dl class="figures">
        {figures
          .filter(([, size]) => size > 0)
          .map(([word, size, hint]) => (
            <Figure key={word} label={word} hint={hint}>
              {bytes(size)}
            </Figure>
          ))}
        {int(memory.num_ooms) > 0 && (
          <Figure label="Out-of-memory errors" hint={int(memory.num_replans) > 0 ? `the batch was split anew ${plural(int(memory.num_replans), "time")}` : undefined}>
            {count(int(memory.num_ooms))}
          </Figure>
        )}
      </dl>
      {int(memory.growth_bytes) > 0 && (
        <p class="box waiting foreign">
          {bytes(int(memory.growth_bytes))} did not come back, from stage “{memory.growth_stage}”: this looks like a leak.
        </p>
      )}
    </>
  );
}

// For each record, the peak that was predicted for the plan in force; 0: none was.
export function predictionsOf(attempt: Attempt): number[] {
  let current = int(attempt.predicted_bytes);
  return (attempt.memory_records ?? []).map((record) => {
    // A new plan has no prediction until its probe.
    if (record.plan !== undefined) current = 0;
    if (int(record.predicted_bytes) > 0) current = int(record.predicted_bytes);
    return current;
  });
}

// A prediction that is this much larger than all else would flatten the bars.
const FARTHEST = 2;

// The end of the bars' axis, in bytes: predictions may lie beyond it.
export function scaleEnd(attempt: Attempt): number {
  const used = (attempt.memory_records ?? []).flatMap((record) => [record.allocated_bytes, record.reserved_bytes, record.peak_bytes].map(int));
  const most = Math.max(1, limitOf(attempt), peakOf(attempt), ...used);
  return Math.max(most, ...predictionsOf(attempt).filter((size) => size < FARTHEST * most)) * 1.02;
}

function Stages({ attempt }: { attempt: Attempt }) {
  const records = attempt.memory_records ?? [];
  if (records.length === 0) return <p class="hint">Its trainer reported no stages.</p>;
  const end = scaleEnd(attempt);
  const predictions = predictionsOf(attempt);
  return (
    <>
      <div class="legend">
        <span>
          <span class="state-completed">■</span> allocated
        </span>
        <span>
          <span class="state-preempted faint">■</span> reserved
        </span>
        <span>
          <span class="state-pruned">┃</span> peak so far
        </span>
        <span>
          <span class="state-predicted">┇</span> predicted for the plan in force{predictions.some((size) => size > end) && " (→: beyond the axis)"}
        </span>
        <span>
          <span class="state-oom">┃</span> limit, {bytes(limitOf(attempt))}
        </span>
      </div>
      <Scroll label="Memory by stage">
        <table class="stages">
          <thead>
            <tr>
              <th scope="col">Stage</th>
              <th scope="col" class="number">
                Step
              </th>
              <th scope="col">0 to {bytes(end)}</th>
              {["Allocated", "Reserved", "Peak", "Predicted", "Free", "Host"].map((word) => (
                <th key={word} scope="col" class="number">
                  {word}
                </th>
              ))}
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {records.map((record, index) => (
              <Stage key={index} record={record} predicted={predictions[index] ?? 0} limit={limitOf(attempt)} end={end} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

interface StageProps {
  record: MemoryRecord;
  predicted: number;
  limit: number;
  end: number;
}

function Stage(props: StageProps) {
  const { record, predicted, end } = props;
  const sizes = [record.allocated_bytes, record.reserved_bytes, record.peak_bytes, predicted, record.free_bytes, record.resident_bytes];
  const isError = int(record.needed_bytes) > 0 || /oom/i.test(record.stage ?? "");
  return (
    <tr>
      <th scope="row">
        <span class={isError ? "clip state-oom" : "clip"} title={record.stage}>
          {record.stage}
        </span>
      </th>
      <td class="number">{count(int(record.step))}</td>
      <td class="bars">
        <Bars {...props} />
        {predicted > end && <span class="state-predicted beyond">→</span>}
      </td>
      {sizes.map((size, index) => (
        <td key={index} class="number">
          {int(size) > 0 ? bytes(int(size)) : <span class="hint">–</span>}
        </td>
      ))}
      <td>
        <span class="foreign">{recordNote(record)}</span>
      </td>
    </tr>
  );
}

function Bars({ record, predicted, limit, end }: StageProps) {
  const at = (size: number) => (size / end) * 100;
  const [allocated, reserved, peak] = [int(record.allocated_bytes), int(record.reserved_bytes), int(record.peak_bytes)];
  const words = `allocated ${bytes(allocated)}, reserved ${bytes(reserved)}, peak ${bytes(peak)}, predicted ${predicted > 0 ? bytes(predicted) : "unknown"}, limit ${bytes(limit)}`;
  const line = (size: number, colour: string, dash?: string) =>
    size > 0 &&
    size <= end && (
      <path class={`state-${colour}`} d={`M${at(size)} 0V10`} stroke="currentColor" stroke-width="2.5" stroke-dasharray={dash} vector-effect="non-scaling-stroke" />
    );
  return (
    <svg viewBox="0 0 100 10" width="100%" height="18" preserveAspectRatio="none" role="img" aria-label={words}>
      <title>{words}</title>
      <rect class="state-preempted faint" x="0" y="1" width={at(reserved)} height="8" fill="currentColor" />
      <rect class="state-completed" x="0" y="2.5" width={at(allocated)} height="5" fill="currentColor" />
      {line(peak, "pruned")}
      {line(predicted, "predicted", "3 3")}
      {line(limit, "oom")}
    </svg>
  );
}
