// Pages whose code is read when they are first shown.
import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError } from "./api/call";
import { ErrorBox, Loading } from "./parts/parts";

// `words`: what the address says.
export type PageProps = { words: string[] };
export type LazyPage = ComponentType<PageProps>;

export function lazy(read: () => Promise<ComponentType<PageProps>>): LazyPage {
  let found: ComponentType<PageProps> | undefined;
  return function Lazy(props: PageProps) {
    const [failed, setFailed] = useState(false);
    const [, setRead] = useState(false);
    const reading = useMemo(read, []);
    useEffect(() => {
      reading.then(
        (page) => {
          found = page;
          setRead(true);
        },
        () => setFailed(true),
      );
    }, []);
    if (failed) {
      const error = new ApiError("UNAVAILABLE", "The page's code could not be read: the server is gone, or was updated.");
      return <ErrorBox error={error} retry={() => location.reload()} />;
    }
    if (found === undefined) return <Loading what="the page" />;
    const Page = found;
    return <Page {...props} />;
  };
}
