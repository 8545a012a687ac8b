// What a study's pages ask for first.
import { askAhead, type Request } from "./call";

const LATEST = 8;

export function studyRequest(name: string): Request<"StudyService/GetStudy"> {
  return { name };
}

export function historyRequest(study: string): Request<"StudyService/GetHistory"> {
  return { study };
}

export function latestRequest(study: string): Request<"StudyService/ListTrials"> {
  return { study, newest_first: true, page_size: LATEST };
}

// `below`: which page of the study; empty: its overview.
export function askForStudy(name: string, below: string): void {
  askAhead("StudyService/GetStudy", studyRequest(name));
  if (below !== "") return;
  askAhead("StudyService/GetHistory", historyRequest(name));
  askAhead("StudyService/ListTrials", latestRequest(name));
}
