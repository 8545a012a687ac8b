// The page of `hpo export html` as one file, dist-export/export.html, whose HPO-DATA the command
// replaces by the study's data (API.md, "An exported page").
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import preact from "@preact/preset-vite";
import { defineConfig, type Plugin } from "vite";

function sha256(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

// Puts the script and the styles into the file. Its policy allows these and nothing else.
function oneFile(template: string): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") script += part.code;
        else if (name.endsWith(".css")) style += String(part.source);
        delete bundle[name];
      }
      script = script.trim();
      style = style.trim();
      const ends = /<\/(script|style)|<!--/i.test(script + style);
      if (ends || (script + style).includes("HPO-DATA")) {
        this.error("the script or the style ends its own element, or has the data's place");
      }
      const policy = `default-src 'none'; script-src ${sha256(script)}; style-src ${sha256(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'`;
      const parts: Record<string, string> = { "HPO-POLICY": policy, "HPO-STYLE": style, "HPO-SCRIPT": script };
      const source = template.replace(/HPO-(POLICY|STYLE|SCRIPT)/g, (word) => parts[word] ?? word);
      this.emitFile({ type: "asset", fileName: "export.html", source });
    },
  };
}

export default defineConfig({
  plugins: [preact(), oneFile(readFileSync(new URL("export.html", import.meta.url), "utf8"))],
  publicDir: false,
  build: {
    outDir: "dist-export",
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: "src/export.tsx",
      output: { format: "iife", codeSplitting: false },
      transform: { define: { "import.meta": "{}" } }, // of a helper for files that this page does not have
    },
  },
});
