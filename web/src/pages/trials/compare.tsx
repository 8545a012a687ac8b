import type { PageProps } from "../../lazy";

export function CompareTrials(_: PageProps) {
  return null;
}
