import { defineConfig, type ViteUserConfig } from "vitest/config";

/** The tests that answer for the module that is being changed. */
const config: ViteUserConfig = defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: JSON.parse(process.env.PLIMSOLL_MUTANT_TESTS ?? "[]"),
    setupFiles: ["test/fixed-seed.ts"],
    testTimeout: 30_000,
  },
});

export default config;
