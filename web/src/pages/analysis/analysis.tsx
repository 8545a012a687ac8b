import type { PageProps } from "../../lazy";

export function Analysis(_: PageProps) {
  return null;
}
