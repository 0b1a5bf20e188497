import { defineConfig } from "vite";

// The build is committed: names carry no time and no path, so that the same sources give the same bytes.
export default defineConfig({
  base: "/",
  build: {
    outDir: "../src/anatomica/studio/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
    target: "es2022",
  },
});
