// The study's name, state and orders, above each of its pages.
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Study, StudyOrder } from "../../api/messages";
import { whyReadOnly } from "../../api/session";
import { attributeText, firstOrder, isFinished, resumedText, stateWord, tagsOf } from "../../format/study";
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
  const give = async (order: StudyOrder, done: (study: Study) => string, stopRunning = false) => {
    const request = { name: live.name, order, stop_running_trials: stopRunning };
    const answer = await perform(call("StudyService/OrderStudy", request), ({ study: now }) => done(now ?? study));
    live.update(answer?.study);
  };
  const first = firstOrder(study);
  const why = whyReadOnly.value;
  const button = (word: string, act: () => void) => (
    <button key={word} type="button" disabled={why !== undefined} title={why} onClick={act}>
      {word}
    </button>
  );
  const mayStop = !isFinished(study) && study.order !== "STUDY_ORDER_STOP";
  return (
    <div class="buttons">
      {first === "pause" && button("Pause", () => void give("STUDY_ORDER_PAUSE", () => "Paused: running trials go on, no new ones start."))}
      {first === "resume" && button("Resume", () => void give("STUDY_ORDER_RUN", resumedText))}
      {mayStop && button("Stop …", () => setOpen("stop"))}
      {button("Extend …", () => setOpen("extend"))}
      {button("Enqueue …", () => setOpen("enqueue"))}
      {button("Edit ranges …", () => setOpen("edit"))}
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
                void give("STUDY_ORDER_STOP", () => "Stopped: trials that run go on to their end.");
              }}
            >
              Let running trials finish
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                close();
                void give("STUDY_ORDER_STOP", () => "Stopped: running trials end as cancelled.", true);
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
