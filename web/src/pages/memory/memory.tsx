import type { PageProps } from "../../lazy";

export function Memory(_: PageProps) {
  return null;
}
