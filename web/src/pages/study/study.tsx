// All pages of one study: what they share, and which one an address is.
import { NotFound } from "../../app";
import { lazy, type LazyPage, type PageProps } from "../../lazy";
import { ErrorBox, Loading } from "../../parts/parts";
import { Link, studyPath } from "../../router";
import { StudyProvider, useLiveStudy } from "../../state/study";
import { StudyHeading } from "./heading";
import { Overview } from "./overview";

const tabs = [
  { word: "Overview", below: "" },
  { word: "Trials", below: "trials" },
  { word: "Analysis", below: "analysis" },
  { word: "Memory", below: "memory" },
];

const pages: { pattern: RegExp; page: LazyPage }[] = [
  { pattern: /^$/, page: Overview },
  { pattern: /^trials$/, page: lazy(async () => (await import("../trials/trials")).Trials) },
  { pattern: /^trials\/(\d+)$/, page: lazy(async () => (await import("../trial/trial")).TrialPage) },
  { pattern: /^compare$/, page: lazy(async () => (await import("../trials/compare")).CompareTrials) },
  { pattern: /^analysis$/, page: lazy(async () => (await import("../analysis/analysis")).Analysis) },
  { pattern: /^memory$/, page: lazy(async () => (await import("../memory/memory")).Memory) },
];

export function StudyPages({ words: [name = "", below = ""] }: PageProps) {
  const live = useLiveStudy(name);
  const study = live.study.value;
  const error = live.error.value;
  if (error?.code === "NOT_FOUND") {
    return (
      <div class="box empty">
        <h1>There is no study of this name</h1>
        <p class="foreign">{error.message}</p>
        <p>
          <Link to="/">All studies</Link>
        </p>
      </div>
    );
  }
  const found = pages.find(({ pattern }) => pattern.test(below));
  if (found === undefined) return <NotFound />;
  const Page = found.page;
  return (
    <StudyProvider value={live}>
      {study && <StudyHeading study={study} />}
      <nav class="tabs" aria-label="Pages of the study">
        {tabs.map(({ word, below: tab }) => (
          <Link
            key={word}
            to={tab === "" ? studyPath(name) : studyPath(name, tab)}
            current={tab === "" ? below === "" : below.startsWith(tab) || (tab === "trials" && below === "compare")}
          >
            {word}
          </Link>
        ))}
      </nav>
      {error && <ErrorBox error={error} />}
      {study ? <Page key={below} words={found.pattern.exec(below)?.slice(1) ?? []} /> : !error && <Loading what="the study" />}
    </StudyProvider>
  );
}
