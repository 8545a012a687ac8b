import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { Domain, EditStudyResponse, Parameter, ParameterRange, Study } from "../../api/messages";
import { int } from "../../api/values";
import { domainText, readValue, valueText } from "../../format/domain";
import { plural } from "../../format/format";
import { Dialog, Scroll } from "../../parts/parts";
import { perform } from "../../state/notices";
import { useStudy } from "../../state/study";

interface Typed {
  low: string;
  high: string;
  choices: string;
}

function typedOf(parameter: Parameter): Typed {
  const { float_domain: float, int_domain: whole, categorical_domain: choice } = parameter.domain ?? {};
  return {
    low: float ? String(float.low ?? 0) : whole ? String(int(whole.low)) : "",
    high: float ? String(float.high ?? 0) : whole ? String(int(whole.high)) : "",
    choices: (choice?.choices ?? []).map(valueText).join("\n"),
  };
}

// The domain as it is typed; the same kind, step and scale. Throws an Error for what is no value.
function domainOf(parameter: Parameter, typed: Typed): Domain {
  const { float_domain: float, int_domain: whole } = parameter.domain ?? {};
  if (float) {
    const end = (text: string) => Number(readValue(parameter, text).double_value);
    return { float_domain: { ...float, low: end(typed.low), high: end(typed.high) } };
  }
  if (whole) {
    const end = (text: string) => readValue(parameter, text).int_value ?? 0;
    return { int_domain: { ...whole, low: end(typed.low), high: end(typed.high) } };
  }
  const known = parameter.domain?.categorical_domain?.choices ?? [];
  const lines = typed.choices.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  // A new choice has the kind of those that are there.
  const kind = Object.keys(known[0] ?? { string_value: "" })[0] ?? "string_value";
  const choices = lines.map(
    (line) => known.find((value) => valueText(value) === line) ?? { [kind]: kind === "double_value" ? Number(line) : line },
  );
  return { categorical_domain: { choices } };
}

// Changes ranges and choices, after showing what would then lie outside.
export function EditRanges({ study, onClose }: { study: Study; onClose: () => void }) {
  const live = useStudy();
  const parameters = study.space?.parameters ?? [];
  const [typed, setTyped] = useState<Record<string, Typed>>(() =>
    Object.fromEntries(parameters.map((parameter) => [parameter.name ?? "", typedOf(parameter)])),
  );
  const [preview, setPreview] = useState<EditStudyResponse>();
  const [problem, setProblem] = useState("");
  const change = (name: string, part: Partial<Typed>) => {
    setPreview(undefined);
    setTyped({ ...typed, [name]: { ...(typed[name] ?? { low: "", high: "", choices: "" }), ...part } });
  };
  const ranges = (): ParameterRange[] =>
    parameters
      .filter((parameter) => {
        const now = typed[parameter.name ?? ""];
        return now !== undefined && JSON.stringify(now) !== JSON.stringify(typedOf(parameter));
      })
      .map((parameter) => {
        const now = typed[parameter.name ?? ""];
        return { parameter: parameter.name ?? "", domain: domainOf(parameter, now ?? typedOf(parameter)) };
      });
  const check = async () => {
    setProblem("");
    try {
      const changed = ranges();
      if (changed.length === 0) return setProblem("No range differs from what the study has.");
      setPreview(await call("StudyService/EditStudy", { name: live.name, ranges: changed, validate_only: true }));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  const apply = async () => {
    const answer = await perform(call("StudyService/EditStudy", { name: live.name, ranges: ranges() }), () => "The ranges were changed.");
    live.update(answer?.study);
    if (answer !== undefined) onClose();
  };
  return (
    <Dialog title="Edit the search space" onClose={onClose}>
      <Scroll label="Ranges and choices">
        <table>
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">Range or choices (one on each line)</th>
            </tr>
          </thead>
          <tbody>
            {parameters.map((parameter) => {
              const name = parameter.name ?? "";
              const now = typed[name] ?? typedOf(parameter);
              return (
                <tr key={name}>
                  <th scope="row" class="foreign">
                    {name}
                  </th>
                  <td>
                    {parameter.domain?.categorical_domain ? (
                      <textarea
                        aria-label={`${name}: choices`}
                        rows={Math.min(6, now.choices.split("\n").length + 1)}
                        value={now.choices}
                        onInput={(event) => change(name, { choices: event.currentTarget.value })}
                      />
                    ) : (
                      <span class="buttons">
                        <input aria-label={`${name}: lowest`} value={now.low} onInput={(event) => change(name, { low: event.currentTarget.value })} />
                        to
                        <input aria-label={`${name}: highest`} value={now.high} onInput={(event) => change(name, { high: event.currentTarget.value })} />
                      </span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
      {preview && <Preview preview={preview} />}
      {problem !== "" && (
        <p class="problem foreign" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={() => void check()}>
          Show what changes
        </button>
        <button type="button" class="main" disabled={preview === undefined} onClick={() => void apply()}>
          Apply
        </button>
      </div>
    </Dialog>
  );
}

// What becomes of trials that would lie outside of the new space; `cancelled` of them only wait.
export function outsideText(outside: number, cancelled: number): string {
  if (outside === 0) return "No trial falls outside of the new space.";
  const kept = outside - cancelled;
  const texts = [
    kept > 0 && `${plural(kept, "trial")} would lie outside; ${kept === 1 ? "it stays, and teaches" : "they stay, and teach"} the sampler nothing more.`,
    cancelled > 0 && `${plural(cancelled, "queued trial")} would be cancelled.`,
  ];
  return texts.filter(Boolean).join(" ");
}

function Preview({ preview }: { preview: EditStudyResponse }) {
  return (
    <div class="box" role="status">
      <ul>
        {(preview.after ?? []).map((range, index) => (
          <li key={range.parameter} class="foreign">
            {range.parameter}: {domainText(preview.before?.[index]?.domain)} → {domainText(range.domain)}
          </li>
        ))}
      </ul>
      <p>{outsideText(int(preview.outside), (preview.cancelled ?? []).length)}</p>
    </div>
  );
}
