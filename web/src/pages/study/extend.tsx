import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Study, UpdateStudyRequest } from "../../api/messages";
import { double } from "../../api/values";
import { budgetText, extendedText } from "../../format/study";
import { Dialog } from "../../parts/parts";
import { perform } from "../../state/notices";
import { useStudy } from "../../state/study";

export interface Extension {
  trials: string; // to add
  hours: string; // in all
  target: string; // "": none
}

function targetText(study: Study): string {
  return study.budget?.target === undefined ? "" : String(double(study.budget.target));
}

export function firstExtension(study: Study): Extension {
  return { trials: study.budget?.trials === undefined ? "" : "50", hours: "", target: targetText(study) };
}

// The change of the budget that was typed. Throws an Error that says what was expected.
export function readExtension(study: Study, typed: Extension): UpdateStudyRequest {
  const [trials, hours, target] = [typed.trials.trim(), typed.hours.trim(), typed.target.trim()];
  const request: UpdateStudyRequest = { name: study.name ?? "" };
  if (trials !== "") {
    if (!/^\d+$/.test(trials)) throw new Error(`Trials to add: expected a whole number, got “${trials}”.`);
    request.add_trials = trials;
  }
  if (hours !== "") {
    if (!(Number(hours) > 0)) throw new Error(`Hours in all: expected a number above 0, got “${hours}”.`);
    request.wall_clock = `${Math.round(Number(hours) * 3600)}s`;
  }
  if (target !== targetText(study)) {
    if (target === "") request.remove_target = true;
    else if (!Number.isFinite(Number(target))) throw new Error(`Target: expected a number, got “${target}”.`);
    else request.target = Number(target);
  }
  if (Object.keys(request).length === 1) throw new Error("Type how many trials to add, or the hours in all.");
  return request;
}

// Adds to the budget of a study.
export function Extend({ study, onClose }: { study: Study; onClose: () => void }) {
  const live = useStudy();
  const [typed, setTyped] = useState(() => firstExtension(study));
  const [problem, setProblem] = useState("");
  const submit = async () => {
    let request: UpdateStudyRequest;
    setProblem("");
    try {
      request = readExtension(study, typed);
    } catch (error) {
      return setProblem((error as Error).message);
    }
    const answer = await perform(call("StudyService/UpdateStudy", request), ({ study: now }) => extendedText(now ?? study));
    live.update(answer?.study);
    if (answer !== undefined) onClose();
  };
  const field = (name: keyof Extension, label: string) => (
    <label>
      {label}
      <input inputMode={name === "trials" ? "numeric" : "decimal"} value={typed[name]} onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })} />
    </label>
  );
  return (
    <Dialog title="Extend the study" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p class="hint">So far: {budgetText(study)}.</p>
        {field("trials", "Trials to add")}
        {field("hours", "Hours in all (empty: as it is)")}
        {study.budget?.target !== undefined && field("target", "It ends at this value (empty: at none)")}
        <button type="submit" class="main">
          Extend
        </button>
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </form>
    </Dialog>
  );
}
