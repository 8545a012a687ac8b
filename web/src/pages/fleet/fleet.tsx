import type { PageProps } from "../../lazy";

export function Fleet(_: PageProps) {
  return null;
}
