import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // One fewer than there are cores is the default: on two cores that is half of the machine.
    maxWorkers: "100%",
  },
});

export default config;
