// Light or dark: what the system says, unless the reader chose.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "hpo-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

// Storage may be forbidden, as it is in a file that is opened from disk.
function kept(): Theme | undefined {
  try {
    const word = localStorage.getItem(KEY);
    return word === "light" || word === "dark" ? word : undefined;
  } catch {
    return undefined;
  }
}

export const theme = signal<Theme>(kept() ?? (system.matches ? "dark" : "light"));

system.addEventListener("change", () => {
  if (kept() === undefined) theme.value = system.matches ? "dark" : "light";
});

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function chooseTheme(choice: Theme): void {
  theme.value = choice;
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // It holds for this page alone.
  }
}
