// Which GPUs the page is about, also such that nobody has connected.
import { useState } from "preact/hooks";
import type { Worker } from "../../api/messages";
import { Card } from "../../parts/parts";
import { setQuery } from "../../router";
import { capacityWord, gpuOf, MOST_GPUS, PRESETS, readCapacity, workerCapacities, workerCapacity, type Gpu } from "./capacities";

const GIB = 2 ** 30;

export interface ChooserProps {
  gpus: readonly Gpu[];
  focus: number;
  workers: readonly Worker[];
}

export function GpuChooser({ gpus, focus, workers }: ChooserProps) {
  const chosen = gpus.map(({ capacity }) => capacity);
  const offered = [...new Set([...PRESETS.map(({ gib }) => gib * GIB), ...workerCapacities(workers), ...chosen])].sort((a, b) => a - b);
  const choose = (capacities: readonly number[]) => setQuery({ gpu: capacities.map(capacityWord) });
  const toggle = (capacity: number) => {
    if (!chosen.includes(capacity)) choose([...chosen, capacity]);
    else if (chosen.length > 1) choose(chosen.filter((one) => one !== capacity));
  };
  return (
    <Card title="GPUs" aside={<Focus gpus={gpus} focus={focus} />}>
      <p class="hint">Choose GPUs by their memory, connected or not.</p>
      <div class="gpus" role="group" aria-label="Memory of GPUs">
        {offered.map((capacity) => {
          const gpu = gpuOf(capacity, workers);
          const on = chosen.includes(capacity);
          const own = workers.some((worker) => worker.alive && workerCapacity(worker) === capacity);
          return (
            <button key={capacity} type="button" aria-pressed={on} disabled={(on && chosen.length === 1) || (!on && chosen.length >= MOST_GPUS)} onClick={() => toggle(capacity)}>
              <strong>{gpu.word}</strong>
              <small class="clip">{own ? `worker: ${gpu.gpus}` : gpu.gpus || "entered here"}</small>
            </button>
          );
        })}
      </div>
      <OwnCapacity add={(capacity) => choose([...chosen, capacity])} full={chosen.length >= MOST_GPUS} />
    </Card>
  );
}

function Focus({ gpus, focus }: { gpus: readonly Gpu[]; focus: number }) {
  return (
    <label class="inline">
      Details for
      <select value={String(focus)} onChange={(event) => setQuery({ look: capacityWord(Number(event.currentTarget.value)) })}>
        {gpus.map((gpu) => (
          <option key={gpu.capacity} value={String(gpu.capacity)}>
            {gpu.gpus === "" ? gpu.word : `${gpu.word} (${gpu.gpus})`}
          </option>
        ))}
      </select>
    </label>
  );
}

function OwnCapacity({ add, full }: { add: (capacity: number) => void; full: boolean }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        const capacity = readCapacity(text);
        if (capacity === undefined) {
          setProblem("Expected the memory of a GPU from 0.25 GiB to 4,096 GiB, such as 20 or 11.8 GiB.");
          return;
        }
        setProblem("");
        setText("");
        add(capacity);
      }}
    >
      <label>
        Other memory, in GiB
        <input value={text} inputMode="decimal" size={8} aria-describedby={problem === "" ? undefined : "capacity-problem"} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={full} title={full ? `At most ${MOST_GPUS} can be chosen.` : undefined}>
        Add
      </button>
      {problem !== "" && (
        <p class="problem" id="capacity-problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}
