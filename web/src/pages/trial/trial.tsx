// One trial: what it was, how it ended and why, and what can be done with it.
import { useState } from "preact/hooks";
import type { PageProps } from "../../lazy";
import type { Study, Trial } from "../../api/messages";
import { int } from "../../api/values";
import { allTrials } from "../../format/study";
import { Card, Read } from "../../parts/parts";
import { Link, studyPath } from "../../router";
import { notify } from "../../state/notices";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { useTrialsVersion } from "../../state/version";
import "../../style/trials.css";
import { Actions } from "./actions";
import { AttemptCard } from "./attempts";
import { CurveCard } from "./curve";
import { MemoryCard } from "./memory";
import { NotesCard } from "./notes";
import { OutcomeCard, ParameterCard, ProposalCard } from "./outcome";
import { printable, repeatCommand } from "./text";
import { isImported } from "./words";

// At most this often, a trial that runs is read again.
const REFRESH_MS = 1000;

export function TrialPage({ words: [word = ""] }: PageProps) {
  const live = useStudy();
  const number = Number(word);
  const reading = useReading("StudyService/GetTrial", { study: live.name, number }, useTrialsVersion(live, [number], REFRESH_MS));
  const study = live.study.value;
  if (study === undefined) return null;
  const last = allTrials(study.counts) + int(study.counts?.demonstration) - 1;
  return (
    <>
      <nav class="neighbours" aria-label="Other trials">
        {number > 0 ? <Link to={studyPath(live.name, "trials", number - 1)}>← Trial {number - 1}</Link> : <span class="hint">the first trial</span>}
        {number < last ? <Link to={studyPath(live.name, "trials", number + 1)}>Trial {number + 1} →</Link> : <span class="hint">the last trial</span>}
      </nav>
      <Read reading={reading} what={`trial ${number}`}>
        {({ trial }) => trial !== undefined && <Shown study={study} trial={trial} reload={reading.reload} />}
      </Read>
    </>
  );
}

function Shown({ study, trial, reload }: { study: Study; trial: Trial; reload: () => void }) {
  const number = int(trial.number);
  const isBest = study.best_trial !== undefined && int(study.best_trial) === number;
  return (
    <>
      <div class="heading">
        <h2 class="title">Trial {number}</h2>
        {isBest && <span class="tag">the best trial of the study</span>}
        <span class="space" />
        <Actions study={study} trial={trial} reload={reload} />
      </div>
      <div class="grid">
        <OutcomeCard study={study} trial={trial} />
        <div class="half">
          <ParameterCard study={study} trial={trial} />
        </div>
        <div class="half stack">
          <ProposalCard study={study} trial={trial} />
          <CommandCard study={study} trial={trial} />
          <NotesCard study={study} trial={trial} reload={reload} />
        </div>
        <AttemptCard trial={trial} />
        <MemoryCard trial={trial} />
        <CurveCard study={study} trial={trial} />
        <LogCard trial={trial} />
      </div>
    </>
  );
}

function CommandCard({ study, trial }: { study: Study; trial: Trial }) {
  const command = repeatCommand(study.name ?? "", trial);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      notify("The command is copied.");
    } catch {
      notify("The browser does not let this page copy. Select the text of the command, and copy it.", "error");
    }
  };
  return (
    <Card
      title="Command to repeat it"
      aside={
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
      }
    >
      <pre class="foreign" tabIndex={0}>
        {command}
      </pre>
    </Card>
  );
}

function LogCard({ trial }: { trial: Trial }) {
  const logs = (trial.attempts ?? []).filter(({ log_tail }) => (log_tail ?? "") !== "");
  const [chosen, setChosen] = useState<number>();
  const shown = logs.find(({ number }) => int(number) === chosen) ?? logs.at(-1);
  return (
    <Card
      title="End of the log"
      aside={
        logs.length > 1 && (
          <label class="inline">
            Attempt
            <select value={int(shown?.number)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
              {logs.map(({ number }) => (
                <option key={int(number)} value={int(number)}>
                  {int(number)}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      {shown === undefined && isImported(trial) ? (
        <p class="hint">It was imported: its output stayed where it ran.</p>
      ) : shown === undefined ? (
        <p class="hint">
          The server has no output of its program. <code>hpo trial logs</code> reads it on the worker's machine.
        </p>
      ) : (
        <pre class="foreign log" tabIndex={0} aria-label="End of the log">
          {printable(shown.log_tail ?? "")}
        </pre>
      )}
    </Card>
  );
}
