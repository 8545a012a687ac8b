import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Study, UpdateStudyRequest } from "../../api/messages";
import { budgetText, extendedText } from "../../format/study";
import { Dialog } from "../../parts/parts";
import { perform } from "../../state/notices";
import { useStudy } from "../../state/study";

// Adds to the budget of a study.
export function Extend({ study, onClose }: { study: Study; onClose: () => void }) {
  const live = useStudy();
  const [trials, setTrials] = useState(study.budget?.trials === undefined ? "" : "50");
  const [hours, setHours] = useState("");
  const [problem, setProblem] = useState("");
  const submit = async () => {
    const request: UpdateStudyRequest = { name: live.name };
    if (trials.trim() !== "") {
      if (!/^\d+$/.test(trials.trim())) return setProblem(`Trials to add: expected a whole number, got “${trials}”.`);
      request.add_trials = trials.trim();
    }
    if (hours.trim() !== "") {
      const total = Number(hours);
      if (!(total > 0)) return setProblem(`Hours in all: expected a number above 0, got “${hours}”.`);
      request.wall_clock = `${Math.round(total * 3600)}s`;
    }
    if (request.add_trials === undefined && request.wall_clock === undefined) {
      return setProblem("Type how many trials to add, or the hours in all.");
    }
    const answer = await perform(call("StudyService/UpdateStudy", request), ({ study: now }) =>
      extendedText(now ?? study),
    );
    live.update(answer?.study);
    if (answer !== undefined) onClose();
  };
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
        <label>
          Trials to add
          <input inputMode="numeric" value={trials} onInput={(event) => setTrials(event.currentTarget.value)} />
        </label>
        <label>
          Hours in all (empty: as it is)
          <input inputMode="decimal" value={hours} onInput={(event) => setHours(event.currentTarget.value)} />
        </label>
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
