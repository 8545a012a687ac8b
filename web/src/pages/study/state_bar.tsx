// How many trials of a study are in which state.
import { useComputed } from "@preact/signals";
import type { Study, TrialCounts } from "../../api/messages";
import { int } from "../../api/values";
import { count, plural } from "../../format/format";
import { endedTrials } from "../../format/study";
import { ShareBar } from "../../parts/parts";
import { LOOKS, StateMark, type Letter } from "../../parts/states";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";

export interface StatePart {
  letter: Letter;
  word: string;
  amount: number;
}

// `forMemory`: trials that were pruned for memory, predicted ones included; undefined: not known, as
// the counts of a study do not have it. Trials that do not count against the budget may be among them.
export function stateParts(counts: TrialCounts, forMemory: number | undefined): StatePart[] {
  const predicted = int(counts.oom_predicted);
  const infeasible = int(counts.infeasible);
  const started = Math.max(0, int(counts.pruned) - predicted);
  const met = Math.min(started, Math.max(0, (forMemory ?? 0) - predicted));
  const amounts: [Letter, number][] = [
    ["C", int(counts.completed) - infeasible],
    ["I", infeasible],
    ["P", started - met],
    ["O", met],
    ["E", predicted],
    ["F", int(counts.failed)],
    ["X", int(counts.cancelled)],
    ["R", int(counts.running)],
    ["Q", int(counts.queued)],
  ];
  const word = (letter: Letter) => (letter === "P" && forMemory === undefined ? "pruned" : LOOKS[letter].word);
  return amounts.filter(([, amount]) => amount > 0).map(([letter, amount]) => ({ letter, word: word(letter), amount }));
}

function usePrunedForMemory(): number | undefined {
  const live = useStudy();
  const pruned = useComputed(() => int(live.study.value?.counts?.pruned));
  const request = { study: live.name, where: ["state=pruned", "why!=PRUNER"], columns: ["number"], page_size: 1 };
  const { data } = useReading("StudyService/QueryTrials", pruned.value > 0 ? request : undefined, pruned);
  return data === undefined ? undefined : int(data.matching);
}

export function StateBar({ study }: { study: Study }) {
  const parts = stateParts(study.counts ?? {}, usePrunedForMemory());
  if (parts.length === 0) return null;
  return (
    <>
      <h3>States</h3>
      <ShareBar
        label={`States of ${plural(endedTrials(study.counts), "ended trial")}`}
        parts={parts.map(({ letter, word, amount }) => ({ word: `${word}: ${count(amount)}`, colour: LOOKS[letter].colour, amount }))}
      />
      <div class="legend">
        {parts.map(({ letter, word, amount }) => (
          <span key={letter} class="state">
            <StateMark look={LOOKS[letter]} />
            {count(amount)} {word}
          </span>
        ))}
      </div>
    </>
  );
}
