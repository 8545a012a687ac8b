// All studies, one in a row.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isLive } from "../../api/call";
import { follow } from "../../api/events";
import type { Study } from "../../api/messages";
import type { PageProps } from "../../lazy";
import { double, int } from "../../api/values";
import { count, duration, hours, number } from "../../format/format";
import { allTrials, attributeText, budgetText, isUnmeasured, remaining, stateWord, tagsOf, UNMEASURED, uses, waitsFor } from "../../format/study";
import { Empty, Read, Scroll, ShareBar } from "../../parts/parts";
import { LOOKS } from "../../parts/states";
import { go, Link, queryWord, setQuery, studyPath } from "../../router";
import { useReading } from "../../state/reading";

const version = signal(0);

export function useStudiesVersion(): typeof version {
  useEffect(() => follow(undefined, { studies: () => (version.value += 1) }), []);
  return version;
}

export function Studies(_: PageProps) {
  const reading = useReading("StudyService/ListStudies", { page_size: 1000 }, useStudiesVersion());
  return (
    <>
      <div class="heading">
        <h1>Studies</h1>
        <span class="space" />
        <label class="inline">
          Filter
          <input type="search" placeholder="name, tag or owner" value={queryWord("filter")} onInput={(event) => setQuery({ filter: event.currentTarget.value })} />
        </label>
      </div>
      <Read reading={reading} what="the studies">
        {({ studies = [], next_page_token: more = "" }) =>
          studies.length === 0 ? (
            <Empty>
              <p>There is no study yet.</p>
              <p>
                <code>hpo study create my.yaml</code> creates one; <code>hpo study presets</code> lists files to start from.
              </p>
            </Empty>
          ) : (
            <StudyTable studies={studies} more={more !== ""} />
          )
        }
      </Read>
    </>
  );
}

function matches(study: Study, filter: string): boolean {
  const words = [study.name ?? "", ...tagsOf(study), attributeText(study, "owner"), stateWord(study)].join(" ").toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.includes(word));
}

function StudyTable({ studies, more }: { studies: Study[]; more: boolean }) {
  const shown = studies.filter((study) => matches(study, queryWord("filter")));
  const chosen = queryWord("compare").split(",").filter((name) => name !== "");
  const choose = (name: string, on: boolean) => {
    const names = on ? [...chosen, name] : chosen.filter((other) => other !== name);
    setQuery({ compare: names.slice(-2).join(",") });
  };
  return (
    <div class="card">
      <div class="buttons">
        <span class="hint">
          {count(shown.length)} of {count(studies.length)} studies{more && " (the first 1,000)"}
        </span>
        <span class="space" />
        <button type="button" disabled={chosen.length !== 2} title="Choose two studies" onClick={() => go(`/compare?${new URLSearchParams(chosen.map((name) => ["study", name]))}`)}>
          Compare two
        </button>
      </div>
      <Scroll label="Studies">
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="hint">Compare</span>
              </th>
              <th scope="col">Study</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Best value
              </th>
              <th scope="col">Trials</th>
              <th scope="col" class="number">
                Time left
              </th>
              <th scope="col" class="number">
                GPU time
              </th>
              <th scope="col" class="number">
                Lost
              </th>
              <th scope="col">Owner</th>
              <th scope="col">Tags</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((study) => (
              <Row key={study.name} study={study} chosen={chosen.includes(study.name ?? "")} onChoose={choose} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown.length === 0 && <p class="hint">No study matches the filter.</p>}
    </div>
  );
}

function Row(props: { study: Study; chosen: boolean; onChoose: (name: string, on: boolean) => void }) {
  const { study } = props;
  const name = study.name ?? "";
  const left = remaining(study);
  const times = uses(study);
  const all = times.reduce((sum, use) => sum + use.seconds, 0);
  const lost = times.reduce((sum, use) => sum + (use.lost ? use.seconds : 0), 0);
  const counts = study.counts;
  const unmeasured = isUnmeasured(study);
  return (
    <tr>
      <td>
        <input type="checkbox" aria-label={`Compare ${name}`} checked={props.chosen} onChange={(event) => props.onChoose(name, event.currentTarget.checked)} />
      </td>
      <th scope="row">
        <Link to={studyPath(name)} class="clip" title={name}>
          {name}
        </Link>
      </th>
      <td>
        {stateWord(study)}
        {waitsFor(study, isLive()) !== "" && <div class="hint foreign">{waitsFor(study, isLive())}</div>}
      </td>
      <td class="number">
        {study.best_value === undefined ? <span class="hint">none yet</span> : number(double(study.best_value))}
        <div class="hint foreign">{study.objectives?.[0]?.metric}</div>
      </td>
      <td>
        {budgetText(study)}
        <ShareBar
          label={`${count(allTrials(counts))} trials by state`}
          parts={[
            { word: "completed", colour: LOOKS.C.colour, amount: int(counts?.completed) },
            { word: "pruned: by the pruner or out of memory", colour: LOOKS.P.colour, amount: Math.max(0, int(counts?.pruned) - int(counts?.oom_predicted)) },
            { word: LOOKS.E.word, colour: LOOKS.E.colour, amount: int(counts?.oom_predicted) },
            { word: "failed", colour: LOOKS.F.colour, amount: int(counts?.failed) },
            { word: "running", colour: LOOKS.R.colour, amount: int(counts?.running) },
          ]}
        />
      </td>
      <td class="number">{left === undefined ? "" : duration(left)}</td>
      {unmeasured ? (
        <td class="number" colSpan={2}>
          <span class="hint">{UNMEASURED}</span>
        </td>
      ) : (
        <>
          <td class="number">{hours(all)}</td>
          <td class="number">{hours(lost)}</td>
        </>
      )}
      <td class="foreign">{attributeText(study, "owner")}</td>
      <td>
        {tagsOf(study).map((tag) => (
          <span key={tag} class="tag foreign">
            {tag}
          </span>
        ))}
      </td>
    </tr>
  );
}
