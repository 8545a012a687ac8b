import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Parameter, Study, Value } from "../../api/messages";
import { conditionText, domainText, readValue, valueText } from "../../format/domain";
import { Dialog, Scroll } from "../../parts/parts";
import { Link, studyPath } from "../../router";
import { useStudy } from "../../state/study";

// Queues a configuration of the reader's choice. `start`: the values to begin with, such as those of
// another trial.
export function Enqueue(props: { study: Study; onClose: () => void; start?: Record<string, Value>; title?: string }) {
  const live = useStudy();
  const parameters = props.study.space?.parameters ?? [];
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(Object.entries(props.start ?? {}).map(([name, value]) => [name, valueText(value)])),
  );
  const [problem, setProblem] = useState("");
  const [queued, setQueued] = useState<number>();
  const submit = async () => {
    setProblem("");
    setQueued(undefined);
    try {
      const params: Record<string, Value> = {};
      for (const parameter of parameters) {
        const text = texts[parameter.name ?? ""] ?? "";
        if (text.trim() !== "") params[parameter.name ?? ""] = readValue(parameter, text);
      }
      const { trial } = await call("StudyService/EnqueueTrial", { study: live.name, params });
      setQueued(Number(trial?.number ?? 0));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Dialog title={props.title ?? "Enqueue a trial"} onClose={props.onClose}>
      <p class="hint">The next worker runs it. A parameter that stays empty is drawn at random.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Scroll label="Values of the parameters">
          <table>
            <tbody>
              {parameters.map((parameter) => (
                <tr key={parameter.name}>
                  <th scope="row" class="foreign">
                    {parameter.name}
                  </th>
                  <td>
                    <ValueInput
                      parameter={parameter}
                      text={texts[parameter.name ?? ""] ?? ""}
                      onText={(text) => setTexts({ ...texts, [parameter.name ?? ""]: text })}
                    />
                  </td>
                  <td class="hint foreign">
                    {domainText(parameter.domain)} {conditionText(parameter)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <div class="buttons">
          <button type="submit" class="main">
            Enqueue
          </button>
        </div>
        {queued !== undefined && (
          <p role="status">
            Trial {queued} is queued. <Link to={studyPath(live.name, "trials", queued)}>Show trial {queued}</Link>
          </p>
        )}
        {problem !== "" && (
          <p class="problem foreign" role="alert">
            {problem}
          </p>
        )}
      </form>
    </Dialog>
  );
}

function ValueInput(props: { parameter: Parameter; text: string; onText: (text: string) => void }) {
  const name = props.parameter.name ?? "";
  const choices = props.parameter.domain?.categorical_domain?.choices;
  if (choices !== undefined) {
    return (
      <select aria-label={name} value={props.text} onChange={(event) => props.onText(event.currentTarget.value)}>
        <option value="">drawn</option>
        {choices.map((choice) => (
          <option key={valueText(choice)} value={valueText(choice)}>
            {valueText(choice)}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      aria-label={name}
      inputMode="decimal"
      placeholder="drawn"
      value={props.text}
      onInput={(event) => props.onText(event.currentTarget.value)}
    />
  );
}
