// The trials that ran last, as they change.
import { latestRequest } from "../../api/first";
import type { Study, Trial } from "../../api/messages";
import { double, int, instant } from "../../api/values";
import { number } from "../../format/format";
import { Ago, Card, Read, Scroll } from "../../parts/parts";
import { TrialBadge } from "../../parts/states";
import { Link, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";

export function LatestTrials({ study }: { study: Study }) {
  const live = useStudy();
  const reading = useReading("StudyService/ListTrials", latestRequest(live.name), live.version);
  const metric = study.objectives?.[0]?.metric ?? "value";
  return (
    <Card title="Latest trials" aside={<Link to={studyPath(live.name, "trials")}>All trials</Link>}>
      <Read reading={reading} what="the latest trials">
        {({ trials = [] }) =>
          trials.length === 0 ? (
            <p class="hint">No trial yet. A worker that serves this study starts the first one.</p>
          ) : (
            <Scroll label="Latest trials">
              <table>
                <thead>
                  <tr>
                    <th scope="col" class="number">
                      Trial
                    </th>
                    <th scope="col">State</th>
                    <th scope="col" class="number foreign">
                      {metric}
                    </th>
                    <th scope="col">Ended</th>
                  </tr>
                </thead>
                <tbody>
                  {trials.map((trial) => (
                    <Row key={int(trial.number)} trial={trial} study={live.name} best={study.best_trial !== undefined && int(study.best_trial) === int(trial.number)} />
                  ))}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Read>
    </Card>
  );
}

function Row({ trial, study, best }: { trial: Trial; study: string; best: boolean }) {
  const value = trial.value === undefined ? undefined : double(trial.value);
  const step = trial.last_measurement?.step;
  return (
    <tr class={best ? "best" : ""}>
      <td class="number">
        <Link to={studyPath(study, "trials", int(trial.number))}>{int(trial.number)}</Link>
      </td>
      <td>
        <TrialBadge trial={trial} />
        {best && <span class="hint"> best</span>}
      </td>
      <td class="number">{value === undefined ? "" : number(value)}</td>
      <td>{trial.state === "TRIAL_STATE_RUNNING" ? <span class="hint">{step === undefined ? "just started" : `step ${int(step)}`}</span> : trial.ended !== undefined && <Ago instant={instant(trial.ended)} />}</td>
    </tr>
  );
}
