// 2 to 20 trials side by side: what differs first, and what is the same folded away.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, reconnects, type ApiError } from "../../api/call";
import type { Study, Trial } from "../../api/messages";
import type { PageProps } from "../../lazy";
import { int } from "../../api/values";
import { LineSample, seriesLook } from "../../charts/series";
import { count, plural } from "../../format/format";
import { Long } from "../../parts/long";
import { Card, Empty, Read, Scroll } from "../../parts/parts";
import { TrialBadge } from "../../parts/states";
import { Link, queryWord, setQuery, studyPath } from "../../router";
import type { LiveReading, Reading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { useTrialsVersion } from "../../state/version";
import "../../style/trials.css";
import { compareLines, differs, type Line, type LineGroup } from "./compare_lines";
import { ComparedCurves } from "./curves";
import { FEWEST_COMPARED, readPicked } from "./query";

// At most this often, the trials are read again while one of them runs.
const REFRESH_MS = 2000;

function useTrials(study: string, numbers: readonly number[], version: ReadonlySignal<number>): LiveReading<Trial[]> {
  const manual = useSignal(0);
  const state = useSignal<Reading<Trial[]>>({ data: undefined, error: undefined, loading: true });
  useEffect(() => {
    const abort = new AbortController();
    Promise.all(numbers.map((number) => call("StudyService/GetTrial", { study, number }, abort.signal))).then(
      (answers) => {
        if (!abort.signal.aborted) state.value = { data: answers.map(({ trial }) => trial ?? {}), error: undefined, loading: false };
      },
      (error: ApiError) => {
        if (!abort.signal.aborted) state.value = { data: state.value.data, error, loading: false };
      },
    );
    return () => abort.abort();
  }, [study, numbers.join(","), version.value, manual.value, reconnects.value]);
  return {
    ...state.value,
    reload: () => {
      manual.value += 1;
    },
  };
}

export function CompareTrials(_: PageProps) {
  const live = useStudy();
  const numbers = readPicked(queryWord("trials"));
  const version = useTrialsVersion(live, numbers, REFRESH_MS);
  const reading = useTrials(live.name, numbers, version);
  const study = live.study.value;
  if (study === undefined) return null;
  if (numbers.length < FEWEST_COMPARED) {
    return (
      <Empty>
        <p>Choose 2 to 20 trials in the table of trials to compare them.</p>
        <Link to={studyPath(live.name, "trials")}>All trials</Link>
      </Empty>
    );
  }
  return (
    <div class="grid">
      <Read reading={reading} what="the trials">
        {(trials) => <Comparison study={study} trials={trials} numbers={numbers} />}
      </Read>
      <ComparedCurves study={live.name} numbers={numbers} version={version} />
    </div>
  );
}

function Comparison({ study, trials, numbers }: { study: Study; trials: Trial[]; numbers: number[] }) {
  const groups = compareLines(trials, study);
  const different = groups.map(({ title, lines }) => ({ title, lines: lines.filter(differs) })).filter(({ lines }) => lines.length > 0);
  const same = groups.map(({ title, lines }) => ({ title, lines: lines.filter((line) => !differs(line)) })).filter(({ lines }) => lines.length > 0);
  return (
    <Card title={`What differs between ${plural(trials.length, "trial")}`} aside={<Link to={`${studyPath(study.name ?? "", "trials")}?pick=${numbers.join(",")}`}>Choose others</Link>}>
      <Scroll label="What differs">
        <table class="compared">
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">What</span>
              </th>
              {trials.map((trial, index) => (
                <TrialHeading key={int(trial.number)} study={study.name ?? ""} trial={trial} index={index} numbers={numbers} />
              ))}
            </tr>
          </thead>
          {different.map((group) => (
            <Group key={group.title} group={group} width={trials.length} />
          ))}
        </table>
      </Scroll>
      {different.length === 0 && <p>Nothing differs but their numbers.</p>}
      {same.length > 0 && <Same groups={same} trials={trials.length} />}
    </Card>
  );
}

function TrialHeading(props: { study: string; trial: Trial; index: number; numbers: number[] }) {
  const number = int(props.trial.number);
  const others = props.numbers.filter((other) => other !== number);
  return (
    <th scope="col">
      <span class="state">
        <LineSample look={seriesLook(props.index)} />
        <Link to={studyPath(props.study, "trials", number)}>Trial {number}</Link>
        {others.length >= FEWEST_COMPARED && (
          <button type="button" class="quiet" aria-label={`Leave trial ${number} out`} title="Leave it out" onClick={() => setQuery({ trials: others.join(",") })}>
            ✕
          </button>
        )}
      </span>
      <div>
        <TrialBadge trial={props.trial} />
      </div>
    </th>
  );
}

function Group({ group, width }: { group: LineGroup; width: number }) {
  return (
    <tbody>
      <tr class="group">
        <th scope="rowgroup" colSpan={width + 1}>
          {group.title}
        </th>
      </tr>
      {group.lines.map((line) => (
        <Row key={line.name} line={line} />
      ))}
    </tbody>
  );
}

const LONGEST_PLAIN = 32;

function Row({ line }: { line: Line }) {
  return (
    <tr>
      <th scope="row">
        <span class="clip" title={line.name}>
          {line.name}
        </span>
      </th>
      {line.texts.map((text, index) => (
        <td key={index} class={index === line.best ? "winner" : ""}>
          {text === "" ? (
            <span class="hint">none</span>
          ) : text.length > LONGEST_PLAIN ? (
            <div class="wrapped">
              <Long text={text} shown={160} />
            </div>
          ) : (
            <span class="foreign">{text}</span>
          )}
          {index === line.best && <span class="hint"> best</span>}
        </td>
      ))}
    </tr>
  );
}

function Same({ groups, trials }: { groups: LineGroup[]; trials: number }) {
  const lines = groups.flatMap((group) => group.lines);
  return (
    <details class="same">
      <summary>
        {count(lines.length)} values are the same in {trials === 2 ? "both" : `all ${trials}`} trials
      </summary>
      <Scroll label="What is the same">
        <table>
          {groups.map(({ title, lines: ours }) => (
            <tbody key={title}>
              <tr class="group">
                <th scope="rowgroup" colSpan={2}>
                  {title}
                </th>
              </tr>
              {ours.map((line) => (
                <Row key={line.name} line={{ name: line.name, texts: line.texts.slice(0, 1) }} />
              ))}
            </tbody>
          ))}
        </table>
      </Scroll>
    </details>
  );
}
