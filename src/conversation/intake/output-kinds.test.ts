/** Long outputs of programs with one line that matters, somewhere in them. `run_command` and the plugins show a page of
 *  2,000 tokens, and that line must be on it. The rules were written for the first kinds. The second ones were written
 *  after the rules, which were not changed for them. */
import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { countLarge, makePage } from "./page.ts";

interface OutputKind {
  readonly name: string;
  /** What the program usually prints. Some of it has words of failures. */
  readonly usual: (n: number) => string;
  /** The lines around the one that matters. */
  readonly failure: readonly string[];
  /** The line that matters. */
  readonly kept: string;
  /** What comes at the end. */
  readonly end?: readonly string[];
}

const log = (n: number) => `2026-11-18T09:${String(n % 60).padStart(2, "0")}:07Z INFO request ${n} took ${n % 97} ms`;

const first: readonly OutputKind[] = [
  {
    name: "a compiler that the system killed",
    usual: (n) => `  CC      src/errors/handler-${n}.o`,
    failure: ["Killed", "make[2]: *** [Makefile:88: src/errors/handler-7.o] Error 137"],
    kept: "Killed",
    end: ["make: *** [Makefile:12: all] Error 2"],
  },
  {
    name: "a container that ran out of memory",
    usual: (n) => `  worker-${n}   1/1     Running     0          ${n % 24}h`,
    failure: ["    Last State:     Terminated", "      Reason:       OOMKilled", "      Exit Code:    137"],
    kept: "      Reason:       OOMKilled",
  },
  {
    name: "a linker without a symbol",
    usual: (n) => `[${n}/900] Building CXX object src/CMakeFiles/core.dir/error_path_${n}.cc.o`,
    failure: [
      "/usr/bin/ld: src/main.o: in function `main':",
      "main.c:(.text+0x1d): undefined reference to `open_store'",
      "collect2: ld returned 1 exit status",
    ],
    kept: "main.c:(.text+0x1d): undefined reference to `open_store'",
  },
  {
    name: "a refused connection",
    usual: log,
    failure: ["connect ECONNREFUSED 127.0.0.1:5432", "    at TCPConnectWrap.afterConnect (node:net:1611:16)"],
    kept: "connect ECONNREFUSED 127.0.0.1:5432",
  },
  {
    name: "a test that ran out of time",
    usual: (n) => `tests/test_api.py::test_retries_after_error_${n} PASSED`,
    failure: ["tests/test_api.py::test_stream ", "Timed out after 30.0s waiting for the server"],
    kept: "Timed out after 30.0s waiting for the server",
    end: ["no tests ran to the end"],
  },
  {
    name: "a linter with many files",
    usual: (n) => `checked src/errors/failed-${n}.ts`,
    failure: [
      "/app/src/cart.ts",
      "  12:5  error  'total' is not defined  no-undef",
      "",
      "✖ 1 problem (1 error, 0 warnings)",
    ],
    kept: "  12:5  error  'total' is not defined  no-undef",
  },
  {
    name: "an assertion of pytest",
    usual: (n) => `tests/test_cart.py::test_fails_without_stock[${n}] PASSED`,
    failure: ["    def test_total():", ">       assert total(cart) == 42", "E       assert 41 == 42"],
    kept: "E       assert 41 == 42",
  },
  {
    name: "a package manager that finds no solution",
    usual: (n) => `npm http fetch GET 200 /package-${n} ${n % 300}ms (cache hit)`,
    failure: ["npm ERR! code ERESOLVE", "npm ERR! ERESOLVE unable to resolve dependency tree"],
    kept: "npm ERR! ERESOLVE unable to resolve dependency tree",
    end: ["npm verb exit 1"],
  },
  {
    name: "a full disk",
    usual: (n) => `#${n % 40} extracting layer sha256:${n.toString(16).padStart(12, "0")} done`,
    failure: ["write /var/lib/data/layer.tar: no space left on device"],
    kept: "write /var/lib/data/layer.tar: no space left on device",
  },
  {
    name: "a cause below many frames",
    usual: (n) => `\tat com.example.errors.FailureFilter.doFilter(FailureFilter.java:${n})`,
    failure: ["Caused by: java.lang.IllegalStateException: pool is closed", "\tat com.example.Pool.take(Pool.java:31)"],
    kept: "Caused by: java.lang.IllegalStateException: pool is closed",
  },
];

const counter = await createCounter("estimate:claude-5");

function printRun({ usual, failure, end = [] }: OutputKind, { lines, at }: { lines: number; at: number }): string {
  const before = Math.floor(lines * at);
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => usual(from + index));
  return [...range(0, before), ...failure, ...range(before, lines), ...end, "[exit code 1]"].join("\n");
}

const sizes = [600, 3_000, 20_000];
const places = [0.2, 0.5, 0.9];

test.each(first)("the page of $name has the line that matters", (kind) => {
  for (const lines of sizes) {
    for (const at of places) {
      const text = printRun(kind, { lines, at });
      const options = {
        counter,
        resultTokens: countLarge(text, counter),
        maxTokens: 1_800,
        about: "[about]",
        mark: "abcd",
      };
      const page = makePage(text, { ...options, isOutput: true });
      const found = page?.text.split("\n").includes(kind.kept);
      expect({ lines, at, found }).toEqual({ lines, at, found: true });
      expect(page?.tokens).toBeLessThanOrEqual(1_800);
    }
  }
});
