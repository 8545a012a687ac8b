// Which page an address is.
import { askForStudy } from "./api/first";
import { lazy, type LazyPage } from "./lazy";
import { Link, path } from "./router";
import { Shell } from "./shell";

// Each page's code is read when it is first shown. `ask`: for the data that it shows first.
const pages: { pattern: RegExp; page: LazyPage; ask?: (words: string[]) => void }[] = [
  { pattern: /^\/$/, page: lazy(async () => (await import("./pages/studies/studies")).Studies) },
  { pattern: /^\/compare$/, page: lazy(async () => (await import("./pages/studies/compare")).CompareStudies) },
  { pattern: /^\/fleet$/, page: lazy(async () => (await import("./pages/fleet/fleet")).Fleet) },
  {
    pattern: /^\/studies\/([^/]+)(?:\/(.*))?$/,
    page: lazy(async () => (await import("./pages/study/study")).StudyPages),
    ask: ([name = "", below = ""]) => askForStudy(name, below),
  },
];

function findPage() {
  for (const { pattern, ...found } of pages) {
    const match = pattern.exec(path.value);
    if (match !== null) return { ...found, words: match.slice(1).map(decode) };
  }
  return undefined;
}

// Asks for the data of the page that the address names, before its code is there.
export function askForPage(): void {
  const found = findPage();
  found?.ask?.(found.words);
}

export function App() {
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

function Page() {
  const found = findPage();
  if (found === undefined) return <NotFound />;
  const Found = found.page;
  return <Found words={found.words} />;
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
