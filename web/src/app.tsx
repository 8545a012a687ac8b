// Which page an address is.
import { lazy, type LazyPage } from "./lazy";
import { Link, path } from "./router";
import { Shell } from "./shell";

// Each page's code is read when it is first shown, but for the first two.
const pages: { pattern: RegExp; page: LazyPage }[] = [
  { pattern: /^\/$/, page: lazy(async () => (await import("./pages/studies/studies")).Studies) },
  { pattern: /^\/compare$/, page: lazy(async () => (await import("./pages/studies/compare")).CompareStudies) },
  { pattern: /^\/fleet$/, page: lazy(async () => (await import("./pages/fleet/fleet")).Fleet) },
  { pattern: /^\/studies\/([^/]+)(?:\/(.*))?$/, page: lazy(async () => (await import("./pages/study/study")).StudyPages) },
];

export function App() {
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

function Page() {
  for (const { pattern, page: Found } of pages) {
    const match = pattern.exec(path.value);
    if (match !== null) return <Found words={match.slice(1).map(decode)} />;
  }
  return <NotFound />;
}

function decode(word: string | undefined): string {
  try {
    return decodeURIComponent(word ?? "");
  } catch {
    return word ?? "";
  }
}

export function NotFound() {
  return (
    <div class="box empty">
      <h1>There is no such page</h1>
      <p>
        <Link to="/">All studies</Link>
      </p>
    </div>
  );
}
