import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is waited for comes; how soon is the machine's matter.
    expect: { poll: { interval: 10, timeout: 20_000 } },
    // One fewer than there are cores is the default: on two cores that is half of the machine.
    maxWorkers: "100%",
    // A worker keeps what it has loaded for its next file: loading took a quarter of the time. No module has state that tests share.
    isolate: false,
    // What is built runs as it is built.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
  },
});

export default config;
