import type { PageProps } from "../../lazy";

export function TrialPage(_: PageProps) {
  return null;
}
