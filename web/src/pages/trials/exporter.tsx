// Saves all trials that match, with the columns of the table or with all there are.
import { useRef, useState } from "preact/hooks";
import type { ColumnInfo, QueryTrialsRequest, Study } from "../../api/messages";
import { count } from "../../format/format";
import { notify } from "../../state/notices";
import { lookOf } from "./columns";
import { csvOf, fileName, jsonOf, readAll, saveFile } from "./export";

export function Exporter(props: { study: Study; request: QueryTrialsRequest; columns: readonly string[]; infos: readonly ColumnInfo[] }) {
  const { study, infos } = props;
  const [all, setAll] = useState(true);
  const [progress, setProgress] = useState<string>();
  const abort = useRef<AbortController | undefined>(undefined);
  const save = async (kind: "csv" | "json") => {
    const names = all && infos.length > 0 ? infos.map(({ name }) => name ?? "") : [...props.columns];
    const looks = names.filter((name) => name !== "number").map((name) => lookOf(name, infos));
    abort.current = new AbortController();
    setProgress("Reading the first trials …");
    try {
      const onRead = (read: number, of: number) => setProgress(`${count(read)} of ${count(of)} trials are read …`);
      const pages = await readAll({ ...props.request, columns: names }, onRead, abort.current.signal);
      if (kind === "csv") saveFile(fileName(study.name ?? "", kind), csvOf(pages, looks), "text/csv");
      else saveFile(fileName(study.name ?? "", kind), jsonOf(pages, looks, study.space?.parameters ?? []), "application/json");
    } catch (error) {
      if (!abort.current.signal.aborted) notify((error as Error).message, "error");
    }
    setProgress(undefined);
  };
  if (progress !== undefined) {
    return (
      <span class="buttons">
        <span role="status">{progress}</span>
        <button type="button" onClick={() => abort.current?.abort()}>
          Cancel
        </button>
      </span>
    );
  }
  return (
    <span class="buttons">
      <button type="button" title="Saves all trials that match as a table" onClick={() => void save("csv")}>
        Save as CSV
      </button>
      <button type="button" title="Saves all trials that match as a list of objects" onClick={() => void save("json")}>
        Save as JSON
      </button>
      <label class="inline">
        <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} />
        with all columns
      </label>
    </span>
  );
}
