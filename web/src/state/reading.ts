// What a part of the page reads from the server, with its states: loading, there, outdated, error.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, reconnects, type Answer, type ApiError, type Method, type Request } from "../api/call";

export interface Reading<T> {
  data: T | undefined; // stays while it is read again
  error: ApiError | undefined; // of the last call
  loading: boolean;
}

export interface LiveReading<T> extends Reading<T> {
  reload: () => void;
}

// Calls `method` when the part appears, when the request changes, when the server is back after it
// was lost, and on reload(). `request` undefined: there is nothing to read yet. `version`: a signal
// whose every change reads again. Answers that a newer call overtook are dropped.
export function useReading<M extends Method>(
  method: M,
  request: Request<M> | undefined,
  version?: ReadonlySignal<number>,
): LiveReading<Answer<M>> {
  const state = useSignal<Reading<Answer<M>>>({ data: undefined, error: undefined, loading: true });
  const asked = useRef("");
  const manual = useSignal(0);
  const key = request === undefined ? "" : JSON.stringify(request);
  const turn = `${version?.value ?? 0} ${reconnects.value} ${manual.value}`;
  useEffect(() => {
    if (request === undefined) return;
    const abort = new AbortController();
    const same = asked.current === key;
    asked.current = key;
    state.value = { data: same ? state.value.data : undefined, error: undefined, loading: true };
    call(method, request, abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) state.value = { data, error: undefined, loading: false };
      },
      (error: ApiError) => {
        if (!abort.signal.aborted) state.value = { data: state.value.data, error, loading: false };
      },
    );
    return () => abort.abort();
  }, [method, key, turn]);
  return {
    ...state.value,
    reload: () => {
      manual.value += 1;
    },
  };
}
