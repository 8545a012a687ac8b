// Draining workers, and giving them trials again.
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { whyReadOnly } from "../../api/session";
import { plural } from "../../format/format";
import { Dialog } from "../../parts/parts";
import { perform } from "../../state/notices";

// A worker's name, or all of them.
export type Target = { name: string; busy: boolean } | "all";

function request(target: Target): { names: string[] } | { all: true } {
  return target === "all" ? { all: true } : { names: [target.name] };
}

export function DrainDialog({ target, onClose, onDone }: { target: Target; onClose: () => void; onDone: () => void }) {
  const [now, setNow] = useState(false);
  const [busy, setBusy] = useState(false);
  const drain = async () => {
    setBusy(true);
    const answer = await perform(call("FleetService/DrainWorkers", { ...request(target), now }), ({ names }) =>
      target === "all" ? `${plural(names?.length ?? 0, "worker")} will get no more trials.` : `${target.name} will get no more trials.`,
    );
    setBusy(false);
    if (answer === undefined) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title={target === "all" ? "Drain all workers" : "Drain a worker"} onClose={onClose}>
      <p>
        {target === "all" ? (
          "All workers that are alive get no more trials, and end. Workers that come later under other names are not drained."
        ) : (
          <>
            The worker <strong class="foreign">{target.name}</strong> gets no more trials, and ends. Its name stays drained until you resume it, also
            if the worker starts again.
          </>
        )}
      </p>
      <fieldset>
        <legend>{target === "all" || target.busy ? "What happens to a running trial" : "It runs no trial now; if it gets one meanwhile"}</legend>
        <p>
          <label class="inline">
            <input type="radio" name="when" checked={!now} onChange={() => setNow(false)} />
            The worker finishes its trial first.
          </label>
        </p>
        <p>
          <label class="inline">
            <input type="radio" name="when" checked={now} onChange={() => setNow(true)} />
            The worker saves its trial now and returns it to the queue.
          </label>
        </p>
      </fieldset>
      <div class="buttons">
        <button type="button" class="main" disabled={busy || whyReadOnly.value !== undefined} title={whyReadOnly.value} onClick={() => void drain()}>
          {target === "all" ? "Drain all workers" : "Drain the worker"}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

export async function resume(target: Target, onDone: () => void): Promise<void> {
  const answer = await perform(call("FleetService/ResumeWorkers", request(target)), ({ names }) =>
    target === "all" ? `${plural(names?.length ?? 0, "worker")} may get trials again.` : `${target.name} may get trials again.`,
  );
  if (answer !== undefined) onDone();
}
