// How a trial ended or goes on, why it was proposed, and with which parameters.
import type { Outcome, Study, Trial, Value } from "../../api/messages";
import { double, int, instant, seconds } from "../../api/values";
import { conditionText, domainText } from "../../format/domain";
import { bytes, count, duration, number } from "../../format/format";
import { Long } from "../../parts/long";
import { Ago, Card, Figure, Scroll } from "../../parts/parts";
import { TrialBadge } from "../../parts/states";
import { Link, studyPath } from "../../router";
import { now } from "../../state/now";
import { exactText, printable, readAttributes } from "./text";
import { excessText, isImported, oomFacts, oomKindText, openText, outcomeText, secondsOf } from "./words";

export function OutcomeCard({ study, trial }: { study: Study; trial: Trial }) {
  const outcome = trial.outcome ?? {};
  const metrics = outcome.completed?.metrics ?? outcome.stopped_by_pruner?.metrics ?? trial.last_measurement?.metrics ?? {};
  const excesses = outcome.completed === undefined ? [] : (study.constraints ?? []).map((one) => excessText(one, metrics)).filter((text) => text !== "");
  return (
    <Card title="Outcome" aside={<Times trial={trial} />}>
      <p class="outcome">
        <TrialBadge trial={trial} /> <Long text={trial.outcome === undefined ? openText(trial) : outcomeText(trial.outcome, trial)} />
      </p>
      <Now study={study} trial={trial} />
      {excesses.map((text) => (
        <p key={text} class="foreign">
          It is infeasible: {text}
        </p>
      ))}
      <Details outcome={outcome} trial={trial} />
      <Metrics study={study} metrics={metrics} final={outcome.completed !== undefined} />
      {(outcome.completed?.model_path ?? "") !== "" && (
        <p>
          The model is on the worker's disk: <code class="foreign">{outcome.completed?.model_path}</code>
        </p>
      )}
    </Card>
  );
}

function Times({ trial }: { trial: Trial }) {
  const ended = instant(trial.ended);
  const took = secondsOf(trial, now.value);
  if (isImported(trial) && took === undefined) {
    return (
      <span class="hint">
        when it ran is not known; imported <Ago instant={instant(trial.created)} />
      </span>
    );
  }
  return (
    <span class="hint">
      {took !== undefined && `${ended === undefined ? "has run for" : "took"} ${duration(took)}, `}
      {ended !== undefined ? "ended " : "created "}
      <Ago instant={ended ?? instant(trial.created)} />
    </span>
  );
}

// What the worker said at its last heartbeat.
function Now({ study, trial }: { study: Study; trial: Trial }) {
  if (trial.state !== "TRIAL_STATE_RUNNING") return null;
  const worker = (study.workers ?? []).find((one) => one.study === study.name && one.trial !== undefined && int(one.trial) === int(trial.number));
  if (worker === undefined) return null;
  const parts = [
    (worker.stage ?? "") !== "" ? `stage ${worker.stage}` : "",
    int(worker.step) > 0 ? `step ${count(int(worker.step))}` : "",
    int(worker.allocated_bytes) > 0 ? `${bytes(int(worker.allocated_bytes))} allocated of ${bytes(int(worker.capacity_bytes))}` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? null : <p class="foreign">Now: {parts.join(", ")}.</p>;
}

function Metrics({ study, metrics, final }: { study: Study; metrics: Record<string, unknown>; final: boolean }) {
  const objectives = (study.objectives ?? []).map(({ metric }) => metric ?? "");
  const names = [...new Set([...objectives.filter((name) => name in metrics), ...Object.keys(metrics).sort()])];
  if (names.length === 0) return null;
  return (
    <>
      {!final && <p class="hint">The last values that it reported:</p>}
      <dl class="figures">
        {names.slice(0, 24).map((name) => (
          <Figure key={name} label={name} hint={objectives.includes(name) ? "objective" : undefined}>
            {number(double(metrics[name] as number))}
          </Figure>
        ))}
      </dl>
      {names.length > 24 && <p class="hint">{count(names.length - 24)} more metrics are not shown.</p>}
    </>
  );
}

function Details({ outcome, trial }: { outcome: Outcome; trial: Trial }) {
  const oom = outcome.out_of_memory;
  if (oom !== undefined) {
    return (
      <>
        {oomKindText(oom) !== "" && <p>{oomKindText(oom)}</p>}
        <dl class="figures">
          {oomFacts(oom, trial.params).map(([word, text]) => (
            <Figure key={word} label={word}>
              {text}
            </Figure>
          ))}
        </dl>
        <Message title="Message of the error" text={oom.error_message} />
        <Message title="Traceback" text={oom.error_traceback} />
      </>
    );
  }
  return <Message title="Whole message" text={outcome.failed?.message} />;
}

function Message({ title, text }: { title: string; text: string | undefined }) {
  if ((text ?? "") === "") return null;
  return (
    <details class="message" open={(text ?? "").length < 2000}>
      <summary>{title}</summary>
      <pre class="foreign" tabIndex={0}>
        {printable(text ?? "")}
      </pre>
    </details>
  );
}

export function ProposalCard({ study, trial }: { study: Study; trial: Trial }) {
  const { retryOf } = readAttributes(trial.attributes);
  const lines: { key: string; words: string }[] = [];
  const origin = trial.origin ?? "";
  if (trial.demonstration) lines.push({ key: "demonstration", words: "It is a demonstration, which does not count as a trial." });
  if (!trial.admission && !trial.demonstration) lines.push({ key: "admission", words: "It runs even if its predicted memory does not fit." });
  if (int(trial.forced_micro_batch) > 0) lines.push({ key: "batch", words: `It starts with a micro-batch of ${int(trial.forced_micro_batch)}, as was asked.` });
  if (int(trial.min_capacity_bytes) > 0) lines.push({ key: "capacity", words: `Only workers with more than ${bytes(int(trial.min_capacity_bytes))} may run it.` });
  return (
    <Card title="Why it was proposed">
      {(trial.sampler ?? "") !== "" ? (
        <p>
          Proposed by: <Long text={trial.sampler ?? ""} />
        </p>
      ) : (
        retryOf === undefined && <p class="hint">{origin !== "" ? "Another program chose these values." : "Somebody enqueued these values; no sampler proposed them."}</p>
      )}
      {retryOf !== undefined && (
        <p>
          It tries <Link to={studyPath(study.name ?? "", "trials", retryOf)}>trial {retryOf}</Link> again.
        </p>
      )}
      {origin !== "" && (
        <p>
          Imported from <Long text={origin} />
          {trial.outside_budget && " (outside the budget)"}
        </p>
      )}
      {lines.map(({ key, words }) => (
        <p key={key}>{words}</p>
      ))}
    </Card>
  );
}

// Six digits are read; all of them are in the tooltip.
function ParameterValue({ value }: { value: Value | undefined }) {
  const text = exactText(value);
  if (value?.double_value === undefined) return <Long text={text} />;
  return <span title={text}>{number(double(value.double_value), 6)}</span>;
}

export function ParameterCard({ study, trial }: { study: Study; trial: Trial }) {
  const parameters = study.space?.parameters ?? [];
  const known = parameters.filter(({ name }) => trial.params?.[name ?? ""] !== undefined);
  const others = Object.keys(trial.params ?? {}).filter((name) => !parameters.some((parameter) => parameter.name === name));
  return (
    <Card title="Parameters">
      <Scroll label="Parameters">
        <table class="params">
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">Value</th>
              <th scope="col">Range or choices</th>
            </tr>
          </thead>
          <tbody>
            {[...known, ...others.map((name) => ({ name }))].map((parameter) => (
              <tr key={parameter.name}>
                <th scope="row">
                  <span class="clip" title={parameter.name}>
                    {parameter.name}
                  </span>
                </th>
                <td>
                  <ParameterValue value={trial.params?.[parameter.name ?? ""]} />
                </td>
                <td class="hint">
                  <Long shown={160} text={"domain" in parameter ? [domainText(parameter.domain), conditionText(parameter)].filter(Boolean).join("; ") : "not in the search space any more"} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {seconds(study.budget?.trial_wall_clock) > 0 && <p class="hint">A trial may take {duration(seconds(study.budget?.trial_wall_clock))}.</p>}
    </Card>
  );
}
