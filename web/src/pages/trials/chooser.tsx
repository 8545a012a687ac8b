// Which columns the table has.
import type { ColumnInfo, Study } from "../../api/messages";
import { setQuery } from "../../router";
import { keyOf, lookOf, type ColumnLook, type Group } from "./columns";

const GROUPS: { group: Group; title: string }[] = [
  { group: "field", title: "Fields" },
  { group: "parameter", title: "Parameters" },
  { group: "metric", title: "Metrics" },
];

export function ColumnChooser(props: { study: Study; infos: readonly ColumnInfo[]; columns: readonly string[]; isDefault: boolean }) {
  const { study, infos, columns } = props;
  const looks = infos.map(({ name }) => lookOf(name ?? "", infos, study)).filter(({ name }) => name !== "number");
  const chosen = new Set(columns.map((name) => keyOf(lookOf(name, infos, study))));
  const choose = (look: ColumnLook, on: boolean) => {
    const key = keyOf(look);
    const kept = looks.filter((other) => (keyOf(other) === key ? on : chosen.has(keyOf(other))));
    // An empty list would be the default ones.
    setQuery({ column: kept.length === 0 ? ["number"] : kept.map(keyOf) });
  };
  return (
    <details class="chooser">
      <summary>Columns ({chosen.size})</summary>
      {GROUPS.map(({ group, title }) => {
        const ours = looks.filter((look) => look.group === group);
        return (
          ours.length > 0 && (
            <fieldset key={group}>
              <legend>{title}</legend>
              {ours.map((look) => (
                <label key={look.name} class="inline" title={look.hint}>
                  <input type="checkbox" checked={chosen.has(keyOf(look))} onChange={(event) => choose(look, event.currentTarget.checked)} />
                  <span class="clip">{look.label}</span>
                </label>
              ))}
            </fieldset>
          )
        );
      })}
      <button type="button" disabled={props.isDefault} onClick={() => setQuery({ column: [] })}>
        Default columns
      </button>
    </details>
  );
}
