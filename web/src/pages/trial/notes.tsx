// Note, tags and attributes of a trial, and how they are changed.
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import type { AnnotateRequest, Study, Trial } from "../../api/messages";
import { whyReadOnly } from "../../api/session";
import { int } from "../../api/values";
import { Long } from "../../parts/long";
import { Card, Dialog, Scroll } from "../../parts/parts";
import { perform } from "../../state/notices";
import { attributeJson, attributeWords, readAttributes } from "./text";

interface NotesProps {
  study: Study;
  trial: Trial;
  reload: () => void;
}

export function NotesCard(props: NotesProps) {
  const [open, setOpen] = useState(false);
  const { note, tags, own } = readAttributes(props.trial.attributes);
  const change = async (request: Omit<AnnotateRequest, "study" | "number">, done: string) => {
    const answer = await perform(call("StudyService/Annotate", { study: props.study.name ?? "", number: int(props.trial.number), ...request }), () => done);
    if (answer !== undefined) props.reload();
    return answer !== undefined;
  };
  const why = whyReadOnly.value;
  return (
    <Card
      title="Note, tags and attributes"
      aside={
        <button type="button" disabled={why !== undefined} title={why} onClick={() => setOpen(true)}>
          Edit …
        </button>
      }
    >
      {note !== "" && (
        <p class="note">
          <Long text={note} />
        </p>
      )}
      {tags.length > 0 && (
        <p>
          {tags.map((tag) => (
            <span key={tag} class="tag foreign">
              {tag}
            </span>
          ))}
        </p>
      )}
      {own.length > 0 && (
        <Scroll label="Attributes">
          <table class="params">
            <tbody>
              {own.map(([key, json]) => (
                <tr key={key}>
                  <th scope="row">
                    <span class="clip" title={key}>
                      {key}
                    </span>
                  </th>
                  <td>
                    <Long text={attributeWords(json)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {note === "" && tags.length === 0 && own.length === 0 && <p class="hint">There are none.</p>}
      {open && <Editor note={note} tags={tags} own={own} change={change} onClose={() => setOpen(false)} />}
    </Card>
  );
}

interface EditorProps {
  note: string;
  tags: string[];
  own: [string, string][];
  change: (request: Omit<AnnotateRequest, "study" | "number">, done: string) => Promise<boolean>;
  onClose: () => void;
}

function Editor({ note, tags, own, change, onClose }: EditorProps) {
  const [text, setText] = useState(note);
  const [tag, setTag] = useState("");
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const saveNote = async () => {
    if (await change({ note: text }, text === "" ? "The note is removed." : "The note is saved.")) onClose();
  };
  const addTag = async () => {
    if (tag.trim() !== "" && (await change({ add_tags: [tag.trim()] }, "The tag is added."))) setTag("");
  };
  const setAttribute = async () => {
    if (key.trim() === "" || !(await change({ attributes: { [key.trim()]: attributeJson(value) } }, "The attribute is set."))) return;
    setKey("");
    setValue("");
  };
  const submits = (action: () => Promise<void>) => (event: Event) => {
    event.preventDefault();
    void action();
  };
  return (
    <Dialog title="Note, tags and attributes" onClose={onClose}>
      <form onSubmit={submits(saveNote)}>
        <label class="wide">
          Note
          <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit" class="main">
          Save the note
        </button>
      </form>
      <h3>Tags</h3>
      <Tags tags={tags} onRemove={(one) => void change({ remove_tags: [one] }, "The tag is removed.")} />
      <form class="form" onSubmit={submits(addTag)}>
        <label>
          New tag
          <input value={tag} onInput={(event) => setTag(event.currentTarget.value)} />
        </label>
        <button type="submit">Add</button>
      </form>
      <h3>Attributes</h3>
      {own.map(([name, json]) => (
        <p key={name}>
          <code class="clip">{name}</code> <span class="clip">{attributeWords(json)}</span>{" "}
          <button type="button" onClick={() => void change({ attributes: { [name]: "" } }, "The attribute is removed.")}>
            Remove
          </button>
        </p>
      ))}
      <form class="form" onSubmit={submits(setAttribute)}>
        <label>
          Name
          <input value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <label>
          Value (JSON, or a text)
          <input value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        <button type="submit">Set</button>
      </form>
    </Dialog>
  );
}

function Tags({ tags, onRemove }: { tags: string[]; onRemove: (tag: string) => void }) {
  return (
    <p>
      {tags.map((tag) => (
        <span key={tag} class="chip">
          <span class="clip">{tag}</span>
          <button type="button" class="quiet" aria-label={`Remove the tag ${tag}`} onClick={() => onRemove(tag)}>
            ✕
          </button>
        </span>
      ))}
    </p>
  );
}
