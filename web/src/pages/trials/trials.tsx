import type { PageProps } from "../../lazy";

export function Trials(_: PageProps) {
  return null;
}
