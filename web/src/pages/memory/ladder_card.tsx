// Trials that continued with smaller micro-batches, step by step.
import { useState } from "preact/hooks";
import { call, type ApiError } from "../../api/call";
import type { Study, Trial } from "../../api/messages";
import { int } from "../../api/values";
import { count, plural } from "../../format/format";
import { Card, Read, Scroll } from "../../parts/parts";
import { letterOfTrial, StateBadge } from "../../parts/states";
import { Link, studyPath } from "../../router";
import { perform } from "../../state/notices";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { ladderSentence, laddersOf, type LadderTrial, type Step } from "./ladder";

// Trials of a page that are looked through, and ladders that are shown at first.
const PAGE = 200;
const SHOWN = 15;

export function Ladder({ study }: { study: Study }) {
  const live = useStudy();
  const request = { study: live.name, view: "TRIAL_VIEW_FULL" as const, newest_first: true, page_size: PAGE };
  const reading = useReading("StudyService/ListTrials", request, live.version);
  const [older, setOlder] = useState<{ trials: Trial[]; token: string }>();
  const [more, setMore] = useState(false);
  const readOlder = async (token: string) => {
    const answer = await perform(call("StudyService/ListTrials", { ...request, page_token: token }), () => `${plural(PAGE, "older trial")} were looked through.`);
    if (answer === undefined) return;
    setOlder({ trials: [...(older?.trials ?? []), ...(answer.trials ?? [])], token: answer.next_page_token ?? "" });
  };
  return (
    <Card title="Recovery from out-of-memory errors">
      <Read reading={reading} what="the trials that ran out of memory">
        {(page) => {
          const trials = [...(page.trials ?? []), ...(older?.trials ?? [])];
          const ladders = laddersOf(trials);
          const token = older?.token ?? page.next_page_token ?? "";
          return (
            <>
              <p>{trials.length === 0 ? "There is no trial yet." : ladders.length === 0 ? `None of the newest ${plural(trials.length, "trial")} ran out of memory or was split further.` : ladderSentence(ladders)}</p>
              {ladders.length > 0 && (
                <p class="hint">
                  After an out-of-memory error, a trial repeats the step with smaller micro-batches; “3 × 134 + 110” is a batch of 512 samples in four parts. The effective batch size
                  stays the same.
                </p>
              )}
              {ladders.length > 0 && <LadderTable ladders={more ? ladders : ladders.slice(0, SHOWN)} study={study.name ?? ""} />}
              <div class="buttons">
                {ladders.length > SHOWN && !more && (
                  <button type="button" onClick={() => setMore(true)}>
                    Show all {count(ladders.length)}
                  </button>
                )}
                {token !== "" && (
                  <button type="button" onClick={() => void readOlder(token)}>
                    Look through {PAGE} older trials
                  </button>
                )}
              </div>
            </>
          );
        }}
      </Read>
    </Card>
  );
}

function LadderTable({ ladders, study }: { ladders: readonly LadderTrial[]; study: string }) {
  return (
    <Scroll label="Trials that ran out of memory">
      <table>
        <thead>
          <tr>
            <th scope="col">Trial</th>
            <th scope="col">Micro-batches</th>
            <th scope="col" class="number">
              Out-of-memory errors
            </th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {ladders.map((ladder) => (
            <LadderRow key={int(ladder.trial.number)} ladder={ladder} study={study} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

// The list knows the first and the last plan of an attempt; the trial itself has those between.
function LadderRow({ ladder, study }: { ladder: LadderTrial; study: string }) {
  const [steps, setSteps] = useState<Step[]>();
  const [problem, setProblem] = useState("");
  const number = int(ladder.trial.number);
  const between = ladder.ooms > ladder.steps.length - 1 && steps === undefined;
  const readSteps = async () => {
    try {
      const { trial } = await call("StudyService/GetTrial", { study, number });
      if (trial !== undefined) setSteps(laddersOf([trial])[0]?.steps ?? ladder.steps);
    } catch (error) {
      setProblem((error as ApiError).message);
    }
  };
  return (
    <tr>
      <th scope="row">
        <Link to={studyPath(study, "trials", number)}>trial {number}</Link>
        {ladder.attempts > 1 && <small class="line">{ladder.attempts} attempts</small>}
      </th>
      <td>
        <Steps steps={steps ?? ladder.steps} ended={letterOfTrial(ladder.trial)} />
        {between && (
          <button type="button" class="quiet" aria-label={`Read all steps of trial ${number}`} onClick={() => void readSteps()}>
            all steps
          </button>
        )}
        {problem !== "" && <span class="problem">{problem}</span>}
      </td>
      <td class="number">{count(ladder.ooms)}</td>
      <td>
        <StateBadge letter={letterOfTrial(ladder.trial)} />
      </td>
    </tr>
  );
}

function Steps({ steps, ended }: { steps: readonly Step[]; ended: string }) {
  return (
    <ol class="steps">
      {steps.map((step, index) => {
        const last = index === steps.length - 1;
        const failed = !last || "OE".includes(ended);
        return (
          <li key={index} class={failed ? "failed" : "held"}>
            {step.text}
            <span aria-hidden="true">{failed ? " ✕" : ended === "C" || ended === "I" ? " ✓" : ""}</span>
            <span class="unseen">{failed ? " ran out of memory" : ""}</span>
          </li>
        );
      })}
    </ol>
  );
}
