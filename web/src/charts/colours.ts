// Colours for canvases, which cannot use CSS variables by themselves.
import { computed } from "@preact/signals";
import { theme } from "../state/theme";

export type Colour = (name: string) => string;

// colour("state-oom"), colour("text"): of style/theme.css, in the theme that is shown. What draws
// with it must draw again when this signal changes.
export const colours = computed<Colour>(() => {
  void theme.value;
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (name) => {
    let colour = known.get(name);
    if (colour === undefined) {
      colour = style.getPropertyValue(`--${name}`).trim() || "#888";
      known.set(name, colour);
    }
    return colour;
  };
});
