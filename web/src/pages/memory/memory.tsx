// Memory of a study: what fits which GPU, how well that was predicted, and what it cost.
import type { Study } from "../../api/messages";
import { int } from "../../api/values";
import { count, hours, percent } from "../../format/format";
import { uses } from "../../format/study";
import type { PageProps } from "../../lazy";
import { Card, Figure } from "../../parts/parts";
import { queryWord, queryWords } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { useSlowVersion } from "../../state/version";
import { HoursByUse } from "../study/overview";
import { chosenCapacities, focusOf, gpuOf } from "./capacities";
import { FitMap } from "./fit_map";
import { FrontierCard } from "./frontier";
import { GpuChooser } from "./gpus";
import { useKept } from "./known";
import { Ladder } from "./ladder_card";
import "./memory.css";
import { riskSentence } from "./measured";
import { Scatter } from "./scatter";

export function Memory(_: PageProps) {
  const live = useStudy();
  const study = live.study.value;
  // The workers change with each snapshot of the study, which is too often to read all again.
  const workers = study?.workers ?? [];
  const capacities = chosenCapacities(queryWords("gpu"), workers);
  const focus = focusOf(queryWord("look"), capacities);
  const fit = useKept(useReading("AnalysisService/GetMemoryFit", { study: live.name, capacities }, useSlowVersion()));
  if (study === undefined) return null;
  const gpus = capacities.map((capacity) => gpuOf(capacity, workers));
  return (
    <div class="grid memory">
      <GpuChooser gpus={gpus} focus={focus} workers={workers} />
      <FitMap reading={fit} workers={workers} focus={focus} policy={study.memory_policy ?? ""} />
      <FrontierCard study={study} capacities={capacities} workers={workers} focus={focus} relevant={fit.data?.parameters ?? []} />
      <Scatter study={study} />
      <div class="half">
        <Ladder study={study} />
      </div>
      <div class="half">
        <Costs study={study} />
      </div>
    </div>
  );
}

// Hours by use, first those without a result.
function Costs({ study }: { study: Study }) {
  const all = uses(study);
  const total = all.reduce((sum, use) => sum + use.seconds, 0);
  const lost = all.filter((use) => use.lost).reduce((sum, use) => sum + use.seconds, 0);
  const oom = all.find((use) => use.word === "out of memory")?.seconds ?? 0;
  const counts = study.counts ?? {};
  const ended = int(counts.completed) + int(counts.pruned) + int(counts.failed) + int(counts.cancelled);
  const started = Math.max(0, ended - int(counts.oom_predicted)) + int(counts.running);
  return (
    <div class="stack">
      <Card title="GPU time lost">
        {total > 0 && (
          <dl class="figures">
            <Figure label="Without a result" hint={percent(lost / total)}>
              <span class={lost > 0 ? "lost" : undefined}>{hours(lost)}</span>
            </Figure>
            <Figure label="Lost to out-of-memory errors" hint={percent(oom / total)}>
              {hours(oom)}
            </Figure>
          </dl>
        )}
        <p>{riskSentence(started, int(counts.oom_met), int(counts.oom_recovered))}</p>
        {int(counts.oom_predicted) > 0 && (
          <p>{int(counts.oom_predicted) === 1 ? "One trial was not started, because it fits no connected GPU." : `${count(int(counts.oom_predicted))} trials were not started, because they fit no connected GPU.`}</p>
        )}
      </Card>
      <HoursByUse study={study} />
    </div>
  );
}
