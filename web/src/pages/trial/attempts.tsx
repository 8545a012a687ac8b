// The attempts of a trial: which worker ran it, with which batches, and how each one ended.
import type { Attempt, Trial } from "../../api/messages";
import { int, instant } from "../../api/values";
import { bytes, count, duration } from "../../format/format";
import { Long } from "../../parts/long";
import { Ago, Card, Scroll } from "../../parts/parts";
import { now } from "../../state/now";
import { plansText } from "./words";

const STATES: Record<string, string> = {
  ATTEMPT_STATE_LEASED: "running",
  ATTEMPT_STATE_SUSPECT: "running, but its worker is silent",
  ATTEMPT_STATE_FINISHED: "finished",
  ATTEMPT_STATE_RELEASED: "released",
  ATTEMPT_STATE_LOST: "lost",
  ATTEMPT_STATE_SUPERSEDED: "replaced by a newer attempt",
};

export function AttemptCard({ trial }: { trial: Trial }) {
  const attempts = trial.attempts ?? [];
  const split = attempts.some((attempt) => plansText(attempt, trial.params) !== "");
  return (
    <Card title="Attempts">
      {attempts.length === 0 ? (
        <p class="hint">{trial.outcome === undefined ? "No worker has started it yet." : "No worker has started it."}</p>
      ) : (
        <Scroll label="Attempts">
          <table class="attempts">
            <thead>
              <tr>
                <th scope="col" class="number">
                  Attempt
                </th>
                <th scope="col">State</th>
                <th scope="col">Worker</th>
                {split && <th scope="col">Batch = micro-batches</th>}
                <th scope="col" class="number">
                  Predicted memory
                </th>
                <th scope="col" class="number">
                  Live peak
                </th>
                <th scope="col" class="number">
                  Limit
                </th>
                <th scope="col" class="number">
                  Out-of-memory errors
                </th>
                <th scope="col" class="number">
                  Time
                </th>
                <th scope="col">Started</th>
                <th scope="col">Note</th>
              </tr>
            </thead>
            <tbody>
              {attempts.map((attempt) => (
                <Row key={int(attempt.number)} attempt={attempt} trial={trial} split={split} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Card>
  );
}

function Size({ of }: { of: number }) {
  return of > 0 ? <>{bytes(of)}</> : <span class="hint">unknown</span>;
}

export function limitOf(attempt: Attempt): number {
  const measured = int(attempt.memory?.limit_bytes);
  return measured > 0 ? measured : int(attempt.capacity_bytes);
}

function Row({ attempt, trial, split }: { attempt: Attempt; trial: Trial; split: boolean }) {
  const plans = plansText(attempt, trial.params);
  const [started, ended] = [instant(attempt.started), instant(attempt.ended)];
  return (
    <tr>
      <td class="number">{int(attempt.number)}</td>
      <td>{STATES[attempt.state ?? ""] ?? "unknown"}</td>
      <td>
        <span class="clip" title={attempt.worker}>
          {attempt.worker}
        </span>
      </td>
      {split && <td>{plans}</td>}
      <td class="number">
        <Size of={int(attempt.predicted_bytes)} />
      </td>
      <td class="number">
        <Size of={int(attempt.memory?.live_peak_bytes)} />
      </td>
      <td class="number">
        <Size of={limitOf(attempt)} />
      </td>
      <td class="number">{attempt.memory === undefined ? <span class="hint">unknown</span> : count(int(attempt.memory.num_ooms))}</td>
      <td class="number">{started !== undefined && duration(((ended ?? now.value) - started) / 1000)}</td>
      <td>
        <Ago instant={started} />
      </td>
      <td class="note">
        <Long text={attempt.end_note ?? ""} shown={160} />
      </td>
    </tr>
  );
}
