// Small parts that every page has: states of what is read, times, controls, dialogs.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/call";
import { ago, exactTime } from "../format/format";
import { now } from "../state/now";
import type { Reading } from "../state/reading";
import { Notices } from "./notices";

export function Loading({ what }: { what: string }) {
  return (
    <p class="hint loading" role="status">
      Reading {what} …
    </p>
  );
}

export function ErrorBox({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
  return (
    <div class="box error" role="alert">
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="box empty">{children}</div>;
}

// Shows `children` of what was read; before that, that it is being read; where it failed, why. What
// was read before stays, with the error above it.
export function Read<T>(props: {
  reading: Reading<T> & { reload?: () => void };
  what: string;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error, reload } = props.reading;
  return (
    <>
      {error && <ErrorBox error={error} retry={reload} />}
      {data !== undefined ? props.children(data) : !error && <Loading what={props.what} />}
    </>
  );
}

// "3 min ago", with the whole time as a tooltip.
export function Ago({ instant }: { instant: number | undefined }) {
  if (instant === undefined) return <>never</>;
  return (
    <time dateTime={new Date(instant).toISOString()} title={exactTime(instant)}>
      {ago(instant, now.value)}
    </time>
  );
}

export function Card(props: { title: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`card ${props.class ?? ""}`} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

// What may be larger than its place. Where it is, it scrolls by the keyboard, too.
export function Scroll(props: { label: string; class?: string; busy?: boolean; children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const [over, setOver] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => setOver(element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    for (const one of [element, ...element.children]) observer.observe(one);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={place} class={`scroll ${props.class ?? ""}`} role="group" aria-label={props.label} tabIndex={over ? 0 : undefined} aria-busy={props.busy}>
      {props.children}
    </div>
  );
}

// A number that is looked at first, with what it is.
export function Figure(props: { label: string; children: ComponentChildren; hint?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd>
        {props.children}
        {props.hint !== undefined && <small>{props.hint}</small>}
      </dd>
    </div>
  );
}

// Asks before something that cannot be undone, or for values. It is open as long as it is rendered.
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={props.onClose} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {props.children}
      <Notices within="dialog" />
    </dialog>
  );
}

// A bar of parts of a whole, such as states of trials. Each part has its words as a tooltip.
export function ShareBar({ parts, label }: { parts: { word: string; colour: string; amount: number }[]; label: string }) {
  const total = parts.reduce((sum, part) => sum + part.amount, 0);
  return (
    <svg class="sharebar" role="img" aria-label={label} viewBox="0 0 100 4" preserveAspectRatio="none">
      {parts.reduce<{ at: number; drawn: ComponentChildren[] }>(
        ({ at, drawn }, part) => {
          const width = total > 0 ? (part.amount / total) * 100 : 0;
          if (width > 0) {
            drawn.push(
              <rect key={part.word} class={`state-${part.colour}`} x={at} y="0" width={width} height="4" fill="currentColor">
                <title>{part.word}</title>
              </rect>,
            );
          }
          return { at: at + width, drawn };
        },
        { at: 0, drawn: [] },
      ).drawn}
    </svg>
  );
}
