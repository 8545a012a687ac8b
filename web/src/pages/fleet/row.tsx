// One worker in the fleet's table.
import type { Worker } from "../../api/messages";
import { whyReadOnly } from "../../api/session";
import { instant, int } from "../../api/values";
import { bytes, count, duration, exactTime, percent } from "../../format/format";
import { Ago } from "../../parts/parts";
import { Link, studyPath } from "../../router";
import { now } from "../../state/now";
import { resume, type Target } from "./drain";
import { CONDITIONS, conditionOf, engineJob, isLate, memoryUse } from "./worker";

export interface RowProps {
  worker: Worker;
  drain: (target: Target) => void;
  reload: () => void;
}

export function WorkerRow({ worker, drain, reload }: RowProps) {
  const name = worker.name ?? "";
  const job = engineJob(name);
  const condition = conditionOf(worker);
  const look = CONDITIONS[condition];
  const says = condition === "idle" ? (worker.idle_because ?? "") : "";
  return (
    <tr>
      <th scope="row">
        <span class="clip" title={name}>
          {name}
        </span>
        <small class="line clip" title={worker.device}>
          {worker.device}
        </small>
        {job !== "" && <small class="line clip">{job}</small>}
      </th>
      <td>
        <span class="state" title={look.says}>
          <span class={`state-${look.colour}`} aria-hidden="true">
            {look.sign}
          </span>
          {look.word}
        </span>
        {worker.drained && condition === "gone" && <small class="line">its name is drained</small>}
      </td>
      <td class="at">
        <RunningTrial worker={worker} />
      </td>
      <td>
        <Memory worker={worker} />
      </td>
      <td class="lease">
        <Lease started={instant(worker.trial_started)} busy={worker.trial !== undefined} />
        <small class="line">
          heartbeat <Ago instant={instant(worker.last_heartbeat)} />
        </small>
        {isLate(worker, now.value) && <small class="line late">The heartbeat is late.</small>}
      </td>
      <td class="why">
        {says !== "" && <span class="line foreign">{says}</span>}
        {(worker.notice ?? "") !== "" && <span class="line foreign">{worker.notice}</span>}
        {says === "" && (worker.notice ?? "") === "" && condition === "idle" && <span class="hint">It has not asked for a trial.</span>}
      </td>
      <td>
        <Change worker={worker} drain={drain} reload={reload} />
      </td>
    </tr>
  );
}

function RunningTrial({ worker: { trial, study = "", stage = "", step } }: { worker: Worker }) {
  if (trial === undefined) return <span class="hint">none</span>;
  const at = [stage, int(step) > 0 ? `step ${count(int(step))}` : ""].filter((word) => word !== "").join(", ");
  return (
    <>
      <Link to={studyPath(study, "trials", int(trial))}>trial {int(trial)}</Link>
      <small class="line">
        <Link to={studyPath(study)} class="clip">
          {study}
        </Link>
      </small>
      {at !== "" && <small class="line foreign">{at}</small>}
    </>
  );
}

function Memory({ worker }: { worker: Worker }) {
  const use = memoryUse(worker);
  const capacity = int(worker.capacity_bytes);
  if (use === undefined) {
    const of = capacity > 0 ? `of ${bytes(capacity)}` : "";
    if (worker.trial === undefined) return <span class="hint">{capacity > 0 ? `${bytes(capacity)} in all` : "unknown"}</span>;
    return <span class="hint">in use: unknown {of}</span>;
  }
  const width = (amount: number) => Math.min(100, (amount / use.capacity) * 100);
  return (
    <>
      <span class="state">
        {bytes(use.reserved)} of {bytes(use.capacity)}
      </span>
      <svg
        class="membar"
        role="img"
        aria-label={`${percent(use.reserved / use.capacity)} reserved`}
        viewBox="0 0 100 6"
        preserveAspectRatio="none"
      >
        <rect class="reserved" x="0" y="0" width={width(use.reserved)} height="6" />
        {use.allocated > 0 && <rect class="allocated" x="0" y="0" width={width(use.allocated)} height="6" />}
      </svg>
      <small class="line">{use.allocated > 0 ? `${bytes(use.allocated)} allocated` : "allocated: unknown"}</small>
    </>
  );
}

function Lease({ started, busy }: { started: number | undefined; busy: boolean }) {
  if (!busy) return <span class="hint">no lease</span>;
  if (started === undefined) return <span class="hint">unknown</span>;
  return (
    <time dateTime={new Date(started).toISOString()} title={`since ${exactTime(started)}`}>
      {duration(Math.max(0, Math.round((now.value - started) / 1000)))}
    </time>
  );
}

function Change({ worker, drain, reload }: RowProps) {
  const name = worker.name ?? "";
  const target = { name, busy: worker.trial !== undefined };
  if (worker.drained) {
    return (
      <button type="button" disabled={whyReadOnly.value !== undefined} title={whyReadOnly.value} aria-label={`Resume ${name}`} onClick={() => void resume(target, reload)}>
        Resume
      </button>
    );
  }
  if (!worker.alive) return null;
  return (
    <button type="button" disabled={whyReadOnly.value !== undefined} title={whyReadOnly.value} aria-label={`Drain ${name}`} onClick={() => drain(target)}>
      Drain…
    </button>
  );
}
