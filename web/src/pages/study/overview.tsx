// A study at a glance: results, history, what it waits for, and its search space.
import { isLive } from "../../api/call";
import type { Study } from "../../api/messages";
import { double, int, seconds } from "../../api/values";
import { conditionText, domainText } from "../../format/domain";
import { count, duration, hours, number, percent, plural } from "../../format/format";
import { budgetText, isMinimized, isUnmeasured, remaining, UNMEASURED, uses, waitsFor } from "../../format/study";
import { Card, Figure, Scroll, ShareBar } from "../../parts/parts";
import { Link, studyPath } from "../../router";
import { useStudy } from "../../state/study";
import { History } from "./history";
import { LatestTrials } from "./latest";
import { StateBar } from "./state_bar";

export function Overview() {
  const study = useStudy().study.value;
  if (study === undefined) return null;
  return (
    <div class="grid">
      <Warnings study={study} />
      <Figures study={study} />
      <History study={study} />
      <div class="half">
        <LatestTrials study={study} />
      </div>
      <div class="half">
        <HoursByUse study={study} />
      </div>
      <Space study={study} />
    </div>
  );
}

function Warnings({ study }: { study: Study }) {
  const texts = [
    { title: "Failures ended this study", text: study.failure, kind: "error" },
    { title: "What it waits for", text: waitsFor(study, isLive()), kind: "waiting" },
    { title: "Not everything can be read", text: study.unreadable, kind: "error" },
    { title: "Dry runs", text: study.dry_runs?.trouble, kind: "waiting" },
  ];
  const shown = texts.filter(({ text }) => (text ?? "") !== "");
  if (shown.length === 0) return null;
  return (
    <div>
      {shown.map(({ title, text, kind }) => (
        <div key={title} class={`box ${kind}`} role="status">
          <h2>{title}</h2>
          <p class="foreign">{text}</p>
        </div>
      ))}
    </div>
  );
}

function Figures({ study }: { study: Study }) {
  const objective = study.objectives?.[0];
  const left = remaining(study);
  const oom = int(study.counts?.oom_met);
  const violation = double(study.best_violation);
  const imported = int(study.counts?.imported);
  const unmeasured = isUnmeasured(study);
  return (
    <Card title="Results">
      <dl class="figures">
        <Figure
          label={`Best ${objective?.metric ?? "value"} (${isMinimized(objective) ? "smaller" : "larger"} is better)`}
          hint={
            study.best_trial !== undefined && (
              <>
                <Link to={studyPath(study.name ?? "", "trials", int(study.best_trial))}>trial {int(study.best_trial)}</Link>
                {violation > 0 && `, violates the constraints by ${number(violation)}`}
              </>
            )
          }
        >
          {study.best_value === undefined ? "none yet" : number(double(study.best_value))}
        </Figure>
        <Figure label="Done of the budget" hint={[left !== undefined && `about ${duration(left)} left`, imported > 0 && `${plural(imported, "imported trial")} not counted`].filter(Boolean).join(", ")}>
          {budgetText(study)}
        </Figure>
        <Figure label="Running" hint={`${plural(int(study.counts?.queued), "trial")} queued`}>
          {count(int(study.counts?.running))}
        </Figure>
        <Figure label="Met an out-of-memory error" hint={unmeasured ? UNMEASURED : oom > 0 ? `${count(int(study.counts?.oom_recovered))} of them completed after all` : "of trials that ran here"}>
          {unmeasured ? "unknown" : count(oom)}
        </Figure>
        <Figure label="Pruned: predicted out of memory" hint="not started: they would not fit">
          {count(int(study.counts?.oom_predicted))}
        </Figure>
        <Figure label="Time" hint={unmeasured ? UNMEASURED : study.budget?.wall_clock !== undefined && `of ${duration(seconds(study.budget.wall_clock))}`}>
          {unmeasured ? "unknown" : duration(seconds(study.wall_clock_used))}
        </Figure>
        <Figure label="Sampler, pruner" hint={study.last_proposal !== "" && study.last_proposal}>
          <span class="foreign">
            {[study.sampler, study.pruner].filter((word) => (word ?? "") !== "").join(", ")}
          </span>
        </Figure>
      </dl>
      <StateBar study={study} />
    </Card>
  );
}

export function HoursByUse({ study }: { study: Study }) {
  const shown = uses(study).filter((use) => use.seconds > 0);
  const total = shown.reduce((sum, use) => sum + use.seconds, 0);
  const gpus = int(study.gpus) > 1 ? `, ${int(study.gpus)} GPUs a trial` : "";
  return (
    <Card title="GPU hours by use" aside={<span class="hint">attempts that have ended{gpus}</span>}>
      {shown.length === 0 ? (
        <p class="hint">{isUnmeasured(study) ? "Its trials were imported: their GPU time was not measured here." : "No attempt has ended yet."}</p>
      ) : (
        <>
          <ShareBar label="GPU hours by use" parts={shown.map((use) => ({ word: `${use.word}: ${hours(use.seconds)}`, colour: use.colour, amount: use.seconds }))} />
          <Scroll label="GPU hours by use">
            <table>
              <thead>
                <tr>
                  <th scope="col">Use</th>
                  <th scope="col" class="number">
                    Hours
                  </th>
                  <th scope="col" class="number">
                    Share
                  </th>
                </tr>
              </thead>
              <tbody>
                {shown.map((use) => (
                  <tr key={use.word}>
                    <td>
                      <span class={`state state-${use.colour}`}>■</span> {use.word}
                      {use.lost && <span class="hint"> (lost)</span>}
                    </td>
                    <td class="number">{hours(use.seconds)}</td>
                    <td class="number">{percent(use.seconds / total)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </>
      )}
    </Card>
  );
}

function Space({ study }: { study: Study }) {
  const rows: [string, string | undefined][] = [
    ["Task", study.task],
    ["Training data", study.train],
    ["Validation data", study.validation],
    ["Command", study.command?.join(" ")],
    ["Folder", study.workdir],
    ["Memory policy", study.memory_policy],
    ["GPUs of a trial", int(study.gpus) > 1 ? String(int(study.gpus)) : ""],
    ["Seed", String(study.seed ?? 0)],
  ];
  const constraints = (study.constraints ?? []).map(({ metric, at_least, at_most }) =>
    [at_least !== undefined && `${metric} ≥ ${number(double(at_least))}`, at_most !== undefined && `${metric} ≤ ${number(double(at_most))}`]
      .filter(Boolean)
      .join(", "),
  );
  return (
    <Card title="Search space">
      <Scroll label="Search space">
        <table>
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">Range or choices</th>
              <th scope="col">Condition</th>
            </tr>
          </thead>
          <tbody>
            {(study.space?.parameters ?? []).map((parameter) => (
              <tr key={parameter.name}>
                <th scope="row" class="foreign">
                  {parameter.name}
                </th>
                <td class="foreign">{domainText(parameter.domain)}</td>
                <td class="foreign">{conditionText(parameter)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <details>
        <summary>How it runs</summary>
        <table>
          <tbody>
            {rows
              .filter(([, text]) => (text ?? "") !== "")
              .map(([word, text]) => (
                <tr key={word}>
                  <th scope="row">{word}</th>
                  <td class="foreign">{text}</td>
                </tr>
              ))}
            {constraints.length > 0 && (
              <tr>
                <th scope="row">Constraints</th>
                <td class="foreign">{constraints.join("; ")}</td>
              </tr>
            )}
            {(study.warm_start ?? []).map((prior) => (
              <tr key={prior.study}>
                <th scope="row">Starts from</th>
                <td class="foreign">
                  {prior.study}: {plural(int(prior.trials), "trial")}
                  {int(prior.skipped) > 0 && `, ${count(int(prior.skipped))} skipped: ${prior.why_skipped}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </Card>
  );
}

