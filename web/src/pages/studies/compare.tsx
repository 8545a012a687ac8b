// Two studies side by side.
import type { Study } from "../../api/messages";
import type { PageProps } from "../../lazy";
import { double, int, seconds } from "../../api/values";
import { domainText } from "../../format/domain";
import { count, duration, hours, number } from "../../format/format";
import { budgetText, isUnmeasured, stateWord, UNMEASURED, uses } from "../../format/study";
import { Empty, Read } from "../../parts/parts";
import { Link, queryWords, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { useStudiesVersion } from "./studies";

export function CompareStudies(_: PageProps) {
  const names = queryWords("study");
  const version = useStudiesVersion();
  const left = useReading("StudyService/GetStudy", { name: names[0] ?? "" }, version);
  const right = useReading("StudyService/GetStudy", { name: names[1] ?? "" }, version);
  if (names.length !== 2) {
    return (
      <Empty>
        <p>Choose two studies to compare.</p>
        <Link to="/">All studies</Link>
      </Empty>
    );
  }
  return (
    <>
      <div class="heading">
        <h1>Two studies</h1>
      </div>
      <Read reading={left} what="the first study">
        {(first) => (
          <Read reading={right} what="the second study">
            {(second) => <Table studies={[first.study ?? {}, second.study ?? {}]} />}
          </Read>
        )}
      </Read>
    </>
  );
}

type Line = [string, (study: Study) => string];

function measured(text: (study: Study) => string): (study: Study) => string {
  return (study) => (isUnmeasured(study) ? UNMEASURED : text(study));
}

const results: Line[] = [
  ["State", stateWord],
  ["Objectives", (study) => (study.objectives ?? []).map(({ metric }) => metric).join(", ")],
  ["Best value", (study) => (study.best_value === undefined ? "none yet" : number(double(study.best_value)))],
  ["Best trial", (study) => (study.best_trial === undefined ? "" : String(int(study.best_trial)))],
  ["Trials", budgetText],
  ["Completed", (study) => count(int(study.counts?.completed))],
  ["Pruned", (study) => count(int(study.counts?.pruned))],
  ["Pruned: predicted out of memory", (study) => count(int(study.counts?.oom_predicted))],
  ["Failed", (study) => count(int(study.counts?.failed))],
  ["Met an out-of-memory error", measured((study) => count(int(study.counts?.oom_met)))],
  ["Time", measured((study) => duration(seconds(study.wall_clock_used)))],
  ["Sampler", (study) => study.sampler ?? ""],
  ["Pruner", (study) => study.pruner ?? ""],
  ["Memory policy", (study) => study.memory_policy ?? ""],
  ["Training data", (study) => study.train ?? ""],
  ["Command", (study) => (study.command ?? []).join(" ")],
];

function useLines(): Line[] {
  return uses({}).map(({ word }, index) => [`GPU time: ${word}`, measured((study) => hours(uses(study)[index]?.seconds ?? 0))]);
}

function spaceLines(studies: Study[]): Line[] {
  const names = new Set(studies.flatMap((study) => (study.space?.parameters ?? []).map(({ name }) => name ?? "")));
  return [...names].map((name) => [
    name,
    (study) => domainText(study.space?.parameters?.find((parameter) => parameter.name === name)?.domain) || "not searched",
  ]);
}

function Table({ studies }: { studies: [Study, Study] }) {
  const parts: [string, Line[]][] = [
    ["Results", results],
    ["GPU time", useLines()],
    ["Search space", spaceLines(studies)],
  ];
  return (
    <div class="card scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            {studies.map((study) => (
              <th key={study.name} scope="col">
                <Link to={studyPath(study.name ?? "")} class="foreign">
                  {study.name}
                </Link>
              </th>
            ))}
          </tr>
        </thead>
        {parts.map(([title, lines]) => (
          <tbody key={title}>
            <tr>
              <th scope="rowgroup" colSpan={3}>
                {title}
              </th>
            </tr>
            {lines.map(([word, text]) => {
              const texts = studies.map(text);
              if (texts.every((one) => one === "")) return null;
              return (
                <tr key={word}>
                  <th scope="row" class="foreign">
                    {word}
                  </th>
                  {texts.map((one, index) => (
                    <td key={index} class={texts[0] !== texts[1] ? "foreign differs" : "foreign"}>
                      {one}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        ))}
      </table>
    </div>
  );
}
