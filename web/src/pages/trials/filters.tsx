// Which trials the table shows: a state by a click, and conditions as `hpo trial list --where` has
// them.
import { useState } from "preact/hooks";
import { call, type ApiError } from "../../api/call";
import type { ColumnInfo } from "../../api/messages";
import { LOOKS, StateMark } from "../../parts/states";
import { setQuery } from "../../router";
import { isQuick, QUICK, withQuick, type TableState } from "./query";

export function Filters(props: { study: string; state: TableState; infos: readonly ColumnInfo[]; problem: string }) {
  const { state } = props;
  const quick = state.where.find(isQuick) ?? "";
  return (
    <div class="filters">
      <div class="buttons" role="group" aria-label="Trials of a state">
        {QUICK.map(({ word, where, letter, hint }) => (
          <button
            key={word}
            type="button"
            class="quick"
            title={hint}
            aria-pressed={where === quick}
            onClick={() => setQuery({ where: withQuick(state.where, where), page: "" })}
          >
            {letter !== undefined && <StateMark look={LOOKS[letter]} />} {word}
          </button>
        ))}
      </div>
      <Conditions {...props} />
    </div>
  );
}

function Conditions({ study, state, infos, problem }: { study: string; state: TableState; infos: readonly ColumnInfo[]; problem: string }) {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState("");
  // The server reads the condition before the table is read by it, so that the table stays where
  // the condition has a fault.
  const add = async () => {
    const condition = text.trim();
    if (condition === "") return;
    try {
      await call("StudyService/QueryTrials", { study, where: [condition], columns: ["number"], page_size: 1 });
    } catch (error) {
      setRefused((error as ApiError).message);
      return;
    }
    setRefused("");
    setText("");
    setQuery({ where: [...new Set([...state.where, condition])], page: "" });
  };
  const remove = (condition: string) => setQuery({ where: state.where.filter((other) => other !== condition), page: "" });
  const chips = state.where.filter((condition) => !isQuick(condition));
  const wrong = refused !== "" ? refused : problem;
  return (
    <form
      class="conditions"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <label>
        Condition
        <input
          list="condition-names"
          placeholder="such as train.lr>1e-5"
          value={text}
          aria-invalid={wrong !== ""}
          aria-describedby="condition-problem"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setRefused("");
          }}
        />
      </label>
      <datalist id="condition-names">
        {infos.slice(0, 200).map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="submit">Add</button>
      {chips.map((condition) => (
        <span key={condition} class="chip">
          <span class="clip" title={condition}>
            {condition}
          </span>
          <button type="button" class="quiet" aria-label={`Remove the condition ${condition}`} onClick={() => remove(condition)}>
            ✕
          </button>
        </span>
      ))}
      <p id="condition-problem" class={wrong === "" ? "hint" : "problem foreign"} role={wrong === "" ? undefined : "alert"}>
        {wrong === ""
          ? "NAME, then =, !=, <, <=, > or >=, then a value. NAME is a parameter, a metric, or a column such as state, worker, time (in seconds) or started (a date). All conditions must hold."
          : wrong}
      </p>
    </form>
  );
}
