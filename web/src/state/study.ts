// The study that is shown, kept up to date by the server's events.
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { call, reconnects, type ApiError } from "../api/call";
import { follow } from "../api/events";
import { studyRequest } from "../api/first";
import type { Study, TrialChange } from "../api/messages";
import { paced } from "./pace";

// At most this often, what depends on trials is read again while they change.
const REFRESH_MS = 800;

export type Listener = (change: TrialChange | undefined) => void;

export interface LiveStudy {
  readonly name: string;
  readonly study: ReadonlySignal<Study | undefined>;
  readonly error: ReadonlySignal<ApiError | undefined>;
  // Grows when trials were queued, started or ended: tables and charts read again.
  readonly version: ReadonlySignal<number>;
  // Hears each change of a trial, or undefined where changes were missed and all is to be read
  // again. Returns how to stop.
  onChange(listener: Listener): () => void;
  // Takes an answer that carries the study as it is now.
  update(study: Study | undefined): void;
}

export class Live implements LiveStudy {
  readonly study: Signal<Study | undefined> = signal(undefined);
  readonly error: Signal<ApiError | undefined> = signal(undefined);
  readonly version: Signal<number> = signal(0);
  private readonly listeners = new Set<Listener>();
  private readonly refresh = paced(() => {
    this.version.value += 1;
  }, REFRESH_MS);
  private unfollow: () => void = () => {};

  constructor(readonly name: string) {}

  async start(): Promise<void> {
    this.unfollow();
    try {
      this.study.value = (await call("StudyService/GetStudy", studyRequest(this.name))).study;
      this.error.value = undefined;
    } catch (error) {
      this.error.value = error as ApiError;
      // There is nothing to follow.
      if (["NOT_FOUND", "INVALID_ARGUMENT"].includes(this.error.value.code)) return;
    }
    const sequence = this.study.value?.sequence;
    this.unfollow = follow(
      this.name,
      {
        snapshot: (study) => {
          this.study.value = study;
          this.error.value = undefined;
        },
        change: (change) => {
          this.tell(change);
          if (change.kind !== "measured") this.refresh();
        },
        gone: (error) => {
          this.error.value = error;
        },
        reset: () => {
          this.tell(undefined);
          this.refresh();
        },
      },
      sequence === undefined ? undefined : String(sequence),
    );
  }

  stop(): void {
    this.unfollow();
    this.refresh.cancel();
  }

  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(change: TrialChange | undefined): void {
    for (const listener of this.listeners) listener(change);
  }

  update(study: Study | undefined): void {
    if (study !== undefined) this.study.value = study;
  }
}

const Shown = createContext<LiveStudy | undefined>(undefined);
export const StudyProvider = Shown.Provider;

// The study of the page that this part is on.
export function useStudy(): LiveStudy {
  const live = useContext(Shown);
  if (live === undefined) throw new Error("this part is shown on a study's page alone");
  return live;
}

export function useLiveStudy(name: string): LiveStudy {
  const live = useMemo(() => new Live(name), [name]);
  const turn = reconnects.value;
  useEffect(() => {
    void live.start();
    return () => live.stop();
  }, [live, turn]);
  return live;
}
