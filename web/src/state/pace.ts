// Calls `action` at once, and further calls within `interval_ms` as one call at its end.
export function paced(action: () => void, interval_ms: number): { (): void; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let again = false;
  const run = () => {
    again = false;
    action();
    timer = setTimeout(() => {
      timer = undefined;
      if (again) run();
    }, interval_ms);
  };
  const trigger = () => {
    if (timer === undefined) run();
    else again = true;
  };
  trigger.cancel = () => {
    clearTimeout(timer);
    timer = undefined;
    again = false;
  };
  return trigger;
}
