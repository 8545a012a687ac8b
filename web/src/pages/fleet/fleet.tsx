// The workers: what each GPU runs, how full it is, and why it idles.
import { useState } from "preact/hooks";
import { follow } from "../../api/events";
import type { Worker } from "../../api/messages";
import { whyReadOnly } from "../../api/session";
import { bytes, count, percent, plural } from "../../format/format";
import type { PageProps } from "../../lazy";
import { Card, Empty, Figure, Read, Scroll } from "../../parts/parts";
import { queryWord, setQuery } from "../../router";
import { useReading } from "../../state/reading";
import { usePacedVersion } from "../../state/version";
import { DrainDialog, resume, type Target } from "./drain";
import "./fleet.css";
import { WorkerRow } from "./row";
import { CONDITIONS, conditionOf, idleReasons, matches, summarize } from "./worker";

const REFRESH_MS = 1000;
// Heartbeats change no study.
const EACH_MS = 5000;

function useFleet() {
  const followAll = (refresh: () => void) => {
    const unfollow = follow(undefined, { studies: refresh, reset: refresh });
    const timer = setInterval(() => {
      if (!document.hidden) refresh();
    }, EACH_MS);
    return () => {
      unfollow();
      clearInterval(timer);
    };
  };
  const version = usePacedVersion(REFRESH_MS, followAll, []);
  return useReading("FleetService/ListWorkers", {}, version);
}

export function Fleet(_: PageProps) {
  const reading = useFleet();
  return (
    <>
      <div class="heading">
        <h1>Fleet</h1>
      </div>
      <Read reading={reading} what="the workers">
        {({ workers = [] }) =>
          workers.length === 0 ? (
            <Empty>
              <h2>No worker has connected since the server started</h2>
              <p>
                <code>hpo-worker --models DIR --data DIR</code> starts one worker for each GPU of a machine. On another machine it needs{" "}
                <code>--join</code> and the join string that the server prints.
              </p>
            </Empty>
          ) : (
            <Workers workers={workers} reload={reading.reload} />
          )
        }
      </Read>
    </>
  );
}

function Workers({ workers, reload }: { workers: readonly Worker[]; reload: () => void }) {
  const [target, setTarget] = useState<Target>();
  const filter = { text: queryWord("find"), condition: queryWord("show") };
  const found = workers.filter((worker) => matches(worker, filter));
  const here = found.filter((worker) => conditionOf(worker) !== "gone");
  const gone = found.filter((worker) => conditionOf(worker) === "gone");
  return (
    <div class="grid">
      <Totals workers={workers} />
      <IdleReasons workers={workers} />
      <Card title="Workers" aside={<AllActions workers={workers} drain={() => setTarget("all")} reload={reload} />}>
        <FilterForm filter={filter} />
        {here.length > 0 ? (
          <WorkerTable workers={here} drain={setTarget} reload={reload} label="Workers that are alive" />
        ) : (
          <p class="hint">{filter.text === "" && filter.condition === "" ? "No worker is alive." : "No worker that is alive matches."}</p>
        )}
        {gone.length > 0 && (
          <details open={filter.condition === "gone"}>
            <summary>{plural(gone.length, "worker has", "workers have")} gone</summary>
            <WorkerTable workers={gone} drain={setTarget} reload={reload} label="Workers that have gone" />
          </details>
        )}
      </Card>
      {target !== undefined && <DrainDialog target={target} onClose={() => setTarget(undefined)} onDone={reload} />}
    </div>
  );
}

function Totals({ workers }: { workers: readonly Worker[] }) {
  const sum = summarize(workers);
  return (
    <Card title="Summary">
      <dl class="figures">
        <Figure label="Workers alive" hint={sum.gpus !== sum.workers ? `with ${plural(sum.gpus, "GPU")}` : sum.gone > 0 && `${count(sum.gone)} gone`}>
          {count(sum.workers)}
        </Figure>
        <Figure label="Busy" hint={sum.workers > 0 && percent(sum.busy / sum.workers)}>
          {count(sum.busy)}
        </Figure>
        <Figure label="Idle">{count(sum.idle)}</Figure>
        <Figure label="Drained or draining">{count(sum.drained)}</Figure>
        <Figure
          label="Memory in use"
          hint={
            sum.capacity > 0
              ? `${percent(sum.reserved / sum.capacity)} of ${bytes(sum.capacity)}${sum.unknown > 0 ? `; ${plural(sum.unknown, "worker has", "workers have")} not reported` : ""}`
              : "no worker has reported it"
          }
        >
          {sum.capacity > 0 ? bytes(sum.reserved) : "unknown"}
        </Figure>
      </dl>
    </Card>
  );
}

function IdleReasons({ workers }: { workers: readonly Worker[] }) {
  const reasons = idleReasons(workers);
  if (reasons.length === 0) return null;
  return (
    <div class="box waiting" role="status">
      <h2>Why workers idle</h2>
      <ul class="reasons">
        {reasons.map(({ reason, names }) => (
          <li key={reason}>
            <span class="foreign">{reason}</span>{" "}
            <small class="foreign">
              ({names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${plural(names.length - 3, "more", "more")}` : names.join(", ")})
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function AllActions({ workers, drain, reload }: { workers: readonly Worker[]; drain: () => void; reload: () => void }) {
  const drainable = workers.some((worker) => worker.alive && !worker.drained);
  const drained = workers.some((worker) => worker.drained);
  const whyNoDrain = whyReadOnly.value ?? (drainable ? undefined : "No worker is left to drain.");
  const whyNoResume = whyReadOnly.value ?? (drained ? undefined : "No worker is drained.");
  return (
    <div class="buttons">
      <button type="button" disabled={whyNoDrain !== undefined} title={whyNoDrain} onClick={drain}>
        Drain all…
      </button>
      <button type="button" disabled={whyNoResume !== undefined} title={whyNoResume} onClick={() => void resume("all", reload)}>
        Resume all
      </button>
    </div>
  );
}

function FilterForm({ filter }: { filter: { text: string; condition: string } }) {
  return (
    <form class="form" role="search" onSubmit={(event) => event.preventDefault()}>
      <label>
        Name, device or study
        <input type="search" value={filter.text} onInput={(event) => setQuery({ find: event.currentTarget.value })} />
      </label>
      <label>
        State
        <select value={filter.condition} onChange={(event) => setQuery({ show: event.currentTarget.value })}>
          <option value="">all</option>
          {Object.entries(CONDITIONS).map(([condition, { word }]) => (
            <option key={condition} value={condition}>
              {word}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

interface TableProps {
  workers: readonly Worker[];
  drain: (target: Target) => void;
  reload: () => void;
  label: string;
}

function WorkerTable({ workers, drain, reload, label }: TableProps) {
  return (
    <Scroll label={label}>
      <table class="workers">
        <thead>
          <tr>
            {["Worker", "State", "Trial", "Memory", "Lease age", "Why it idles, what it reports", "Change"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <WorkerRow key={worker.name} worker={worker} drain={drain} reload={reload} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
