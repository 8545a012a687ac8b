// What can be done with a trial. The state of the trial and the role decide what is offered.
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Study, Trial } from "../../api/messages";
import { whyReadOnly } from "../../api/session";
import { int } from "../../api/values";
import { Dialog } from "../../parts/parts";
import { letterOfTrial } from "../../parts/states";
import { Link, studyPath } from "../../router";
import { perform } from "../../state/notices";
import { Enqueue } from "../study/enqueue";

type Open = "stop" | "cancel" | "clone" | undefined;

export function Actions({ study, trial, reload }: { study: Study; trial: Trial; reload: () => void }) {
  const [open, setOpen] = useState<Open>();
  const [again, setAgain] = useState<number>();
  const number = int(trial.number);
  const named = { study: study.name ?? "", number };
  const why = whyReadOnly.value;
  const off = why !== undefined;
  const isRunning = trial.state === "TRIAL_STATE_RUNNING";
  const isQueued = trial.state === "TRIAL_STATE_QUEUED";
  const mayRetry = ["F", "O", "E"].includes(letterOfTrial(trial));
  const close = () => setOpen(undefined);
  const retry = async () => {
    const answer = await perform(call("StudyService/RetryTrials", { study: named.study, numbers: [number] }), ({ trials, skipped }) =>
      trials?.[0] !== undefined ? `Trial ${int(trials[0].number)} is queued: it tries trial ${number} again.` : `Nothing is queued: ${skipped?.[0]?.why ?? "the trial is tried again already"}`,
    );
    if (answer?.trials?.[0] !== undefined) setAgain(int(answer.trials[0].number));
  };
  const preempt = async () => {
    await perform(call("StudyService/PreemptTrial", named), () => "Its worker saves the trial and returns it to the queue at its next heartbeat.");
    reload();
  };
  return (
    <div class="buttons">
      {mayRetry && (
        <button type="button" disabled={off} title={why ?? "Queues the same configuration as a new trial"} onClick={() => void retry()}>
          Retry
        </button>
      )}
      {again !== undefined && <Link to={studyPath(named.study, "trials", again)}>Show trial {again}</Link>}
      {isRunning && (
        <>
          <button type="button" disabled={off} title={why ?? "The trial is saved and goes back to the queue"} onClick={() => void preempt()}>
            Preempt
          </button>
          <button type="button" disabled={off} title={why} onClick={() => setOpen("stop")}>
            Stop …
          </button>
        </>
      )}
      {isQueued && (
        <button type="button" disabled={off} title={why} onClick={() => setOpen("cancel")}>
          Cancel …
        </button>
      )}
      <button type="button" disabled={off} title={why ?? "A new trial that begins with these values"} onClick={() => setOpen("clone")}>
        Clone with changes …
      </button>
      {(open === "stop" || open === "cancel") && <End named={named} kind={open} onClose={close} reload={reload} />}
      {open === "clone" && <Enqueue study={study} title={`A trial that begins with the values of trial ${number}`} start={trial.params ?? {}} onClose={close} />}
    </div>
  );
}

function End(props: { named: { study: string; number: number }; kind: "stop" | "cancel"; onClose: () => void; reload: () => void }) {
  const { named, kind } = props;
  const [reason, setReason] = useState("");
  const end = async () => {
    const request = { ...named, reason };
    if (kind === "stop") await perform(call("StudyService/StopTrial", request), () => "Its worker ends the trial at its next heartbeat or report.");
    else await perform(call("StudyService/CancelTrial", request), () => `Trial ${named.number} is cancelled.`);
    props.onClose();
    props.reload();
  };
  return (
    <Dialog title={kind === "stop" ? `Stop trial ${named.number}` : `Cancel trial ${named.number}`} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void end();
        }}
      >
        <p>{kind === "stop" ? "The trial ends as cancelled, and what it has computed counts no more." : "The trial ends as cancelled, and no worker runs it."}</p>
        <p>
          <label>
            Reason (kept with the trial)
            <input value={reason} maxLength={2000} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        </p>
        <button type="submit" class="danger">
          {kind === "stop" ? "Stop the trial" : "Cancel the trial"}
        </button>
      </form>
    </Dialog>
  );
}
