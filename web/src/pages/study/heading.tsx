// The study's name, state and orders, above each of its pages.
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Study, StudyOrder } from "../../api/messages";
import { mayWrite } from "../../api/session";
import { attributeText, isFinished, stateWord, tagsOf } from "../../format/study";
import { Long } from "../../parts/long";
import { Dialog } from "../../parts/parts";
import { perform } from "../../state/notices";
import { useStudy } from "../../state/study";
import { EditRanges } from "./edit_ranges";
import { Enqueue } from "./enqueue";
import { Extend } from "./extend";

export function StudyHeading({ study }: { study: Study }) {
  const note = attributeText(study, "hpo.note");
  return (
    <div class="heading">
      <h1 class="foreign">{study.name}</h1>
      <span class={`tag word-${stateWord(study)}`}>{stateWord(study)}</span>
      {tagsOf(study).map((tag) => (
        <span key={tag} class="tag foreign">
          {tag}
        </span>
      ))}
      {note !== "" && (
        <span class="hint">
          <Long text={note} shown={200} />
        </span>
      )}
      <span class="space" />
      <Orders study={study} />
    </div>
  );
}

type Open = "extend" | "enqueue" | "edit" | "stop" | undefined;

function Orders({ study }: { study: Study }) {
  const live = useStudy();
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const paused = study.order === "STUDY_ORDER_PAUSE";
  const ended = isFinished(study) || study.order === "STUDY_ORDER_STOP";
  const give = async (order: StudyOrder, done: string, stopRunning = false) => {
    const request = { name: live.name, order, stop_running_trials: stopRunning };
    const answer = await perform(call("StudyService/OrderStudy", request), () => done);
    live.update(answer?.study);
  };
  const why = mayWrite.value ? undefined : "Your token may not change studies.";
  const off = !mayWrite.value;
  return (
    <div class="buttons">
      {paused || ended ? (
        <button type="button" disabled={off} title={why} onClick={() => void give("STUDY_ORDER_RUN", "The study goes on.")}>
          Resume
        </button>
      ) : (
        <button type="button" disabled={off} title={why} onClick={() => void give("STUDY_ORDER_PAUSE", "Paused: running trials go on, no new ones start.")}>
          Pause
        </button>
      )}
      {!ended && (
        <button type="button" disabled={off} title={why} onClick={() => setOpen("stop")}>
          Stop …
        </button>
      )}
      <button type="button" disabled={off} title={why} onClick={() => setOpen("extend")}>
        Extend …
      </button>
      <button type="button" disabled={off} title={why} onClick={() => setOpen("enqueue")}>
        Enqueue …
      </button>
      <button type="button" disabled={off} title={why} onClick={() => setOpen("edit")}>
        Edit ranges …
      </button>
      {open === "extend" && <Extend study={study} onClose={close} />}
      {open === "enqueue" && <Enqueue study={study} onClose={close} />}
      {open === "edit" && <EditRanges study={study} onClose={close} />}
      {open === "stop" && (
        <Dialog title="Stop the study" onClose={close}>
          <p>No new trials start, and its workers leave. It can be resumed later.</p>
          <div class="buttons">
            <button
              type="button"
              class="main"
              onClick={() => {
                close();
                void give("STUDY_ORDER_STOP", "Stopped: trials that run go on to their end.");
              }}
            >
              Let running trials finish
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                close();
                void give("STUDY_ORDER_STOP", "Stopped: running trials end as cancelled.", true);
              }}
            >
              End running trials now
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
