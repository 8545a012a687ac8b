import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";

// The server that `npm run dev` sends calls to: HPO_PAGE_SERVER=http://127.0.0.1:8080.
const server = process.env["HPO_PAGE_SERVER"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [preact()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the page's policy allows no data: address for scripts and styles
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    cssCodeSplit: false,
    rolldownOptions: {
      // Few files, which pack better: what the first two pages need, the chart's library, and the rest.
      output: {
        codeSplitting: {
          groups: [
            { name: "uplot", test: /node_modules\/uplot/ },
            { name: "core", test: /node_modules\/(@preact|preact)|src\/(api|state|parts|format|style)\/|src\/[a-z]+\.tsx|vite\/preload/ },
            { name: "study", test: /src\/pages\/(study|studies)\/|src\/charts\/(plot|colours|mark|scale|frame)/ },
            { name: "more", test: /src\/pages\/(trials|trial|analysis|memory|fleet)\// },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": {
        target: server,
        changeOrigin: true,
        // The server answers its own page alone.
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
  test: { environment: "happy-dom", include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"] },
});
