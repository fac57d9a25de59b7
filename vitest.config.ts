import { defineConfig, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
// @ts-expect-error: a script has no types of its own
import { pageAssets } from "./scripts/bundle-pages.mjs";

/** Runs the files that start processes first, and of these the ones that start hundreds of small ones. A worker grows with each file,
 *  and a large one takes several times as long to start a process as a small one. */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const turnOf = ({ moduleId }: TestSpecification) => turns.findIndex((turn) => turn.test(moduleId));
    return (await super.sort(files)).toSorted((left, right) => turnOf(left) - turnOf(right));
  }
}

const turns: readonly RegExp[] = [
  /\/src\/(results\/tools|host|plans)\/|\/test\/properties\/(tools|store)-/,
  /\/test\/(e2e\/|docs-run|bench-|public)/,
  /(?:)/,
];

const config: ViteUserConfig = defineConfig({
  plugins: [pageAssets()],
  test: {
    include: ["{src,test,scripts}/**/*.test.ts"],
    setupFiles: ["test/fixed-seed.ts"],
    // `npm run test:perf` runs these tests alone. One slow moment of the machine is not a slow program, so a failure is
    // tried again.
    tags: [
      { name: "perf", description: "compares times", timeout: 120_000, retry: 2 },
      { name: "deep", description: "starts many processes or varies a main path: `npm run test:deep` runs it" },
    ],
    // As in CI: a golden file that is missing fails its test. `--update=all` writes it.
    update: "none",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is waited for comes; how soon is the machine's matter.
    expect: { poll: { interval: 10, timeout: 20_000 } },
    // One fewer than there are cores is the default: on two cores that is half of the machine.
    maxWorkers: "100%",
    // A worker keeps what it has loaded for its next file: loading took a quarter of the time. No module has state that tests share.
    isolate: false,
    // Each core has a worker of its own, so a collection on several threads only competes with the other worker. A larger young
    // generation is collected less often. Together they save 8 % of the processor time.
    execArgv: ["--max-semi-space-size=64", "--single-threaded-gc"],
    sequence: { sequencer: ProcessesFirst },
    // What is built runs as it is built.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
  },
});

export default config;
