/** Long outputs of programs with one line that matters, somewhere in them. `run_command` and the plugins show a page of
 *  2,000 tokens, and that line must be on it. The rules were written for the first kinds. The others came later, each ten to
 *  test rules that were fixed before: 7 of the second, 5 of the third and all of the fourth ten passed at first. */
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

const second: readonly OutputKind[] = [
  {
    name: "a borrow checker",
    usual: (n) => `   Compiling error-chain-${n} v0.${n % 20}.1`,
    failure: [
      "error[E0502]: cannot borrow `items` as mutable because it is also borrowed as immutable",
      "  --> src/cart.rs:88:9",
    ],
    kept: "error[E0502]: cannot borrow `items` as mutable because it is also borrowed as immutable",
    end: ["For more information about this error, try `rustc --explain E0502`."],
  },
  {
    name: "a data race",
    usual: (n) => `=== RUN   TestFailureOf${n}\n--- PASS: TestFailureOf${n} (0.00s)`,
    failure: ["==================", "WARNING: DATA RACE", "Write at 0x00c0000b4010 by goroutine 8:"],
    kept: "WARNING: DATA RACE",
  },
  {
    name: "a program that crashed",
    usual: (n) => `running case ${n} of parse_error.c ... ok`,
    failure: ["./run-tests.sh: line 12:  4711 Segmentation fault      (core dumped) ./tests/fuzz"],
    kept: "./run-tests.sh: line 12:  4711 Segmentation fault      (core dumped) ./tests/fuzz",
  },
  {
    name: "a merge with a conflict",
    usual: (n) => `Auto-merging src/errors/failed-${n}.ts`,
    failure: ["CONFLICT (content): Merge conflict in src/cart.ts"],
    kept: "CONFLICT (content): Merge conflict in src/cart.ts",
  },
  {
    name: "a kernel that killed a process",
    usual: (n) => `[${n}.${n % 1000}] usb 1-1: new high-speed device number ${n % 120}`,
    failure: ["[812.4] Out of memory: Killed process 4242 (node) total-vm:9215200kB"],
    kept: "[812.4] Out of memory: Killed process 4242 (node) total-vm:9215200kB",
  },
  {
    name: "a certificate that nobody trusts",
    usual: log,
    failure: ['Get "https://registry.internal/v2/": x509: certificate signed by unknown authority'],
    kept: 'Get "https://registry.internal/v2/": x509: certificate signed by unknown authority',
  },
  {
    name: "a module that is missing",
    usual: (n) => `copying errors/failure_${n}.py -> build/lib/errors`,
    failure: ['  File "/app/main.py", line 3, in <module>', "ModuleNotFoundError: No module named 'yaml'"],
    kept: "ModuleNotFoundError: No module named 'yaml'",
  },
  {
    name: "a plan of infrastructure",
    usual: (n) => `aws_instance.web[${n}]: Refreshing state... [id=i-${n.toString(16).padStart(8, "0")}]`,
    failure: ["│ Error: Reference to undeclared resource", "│ ", '│   on main.tf line 12, in output "url":'],
    kept: "│ Error: Reference to undeclared resource",
  },
  {
    name: "a heap that is full",
    usual: (n) => `[${n}] transformed src/pages/error-${n}.tsx in ${n % 90} ms`,
    failure: ["FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"],
    kept: "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
  },
  {
    name: "a checker of types",
    usual: (n) => `LOG:  Parsing app/errors/failed_${n}.py`,
    failure: ['app/cart.py:12: error: Incompatible types in assignment (expression has type "str")  [assignment]'],
    kept: 'app/cart.py:12: error: Incompatible types in assignment (expression has type "str")  [assignment]',
  },
];

const third: readonly OutputKind[] = [
  {
    name: "an image that cannot be built",
    usual: (n) => `#12 ${n % 60}.${n % 10} npm http fetch GET 200 /error-${n}`,
    failure: ['ERROR: failed to solve: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1'],
    kept: 'ERROR: failed to solve: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1',
  },
  {
    name: "a test that hangs",
    usual: (n) => `test errors::case_${n}_fails ... ok`,
    failure: ["test net::reconnects has been running for over 60 seconds"],
    kept: "test net::reconnects has been running for over 60 seconds",
  },
  {
    name: "a build that lacks a package",
    usual: (n) => `-- Looking for error_header_${n}.h - found`,
    failure: ["CMake Error at CMakeLists.txt:12 (find_package):", "  Could not find a package configuration file"],
    kept: "CMake Error at CMakeLists.txt:12 (find_package):",
  },
  {
    name: "a bundler that finds no file",
    usual: (n) => `${9 + (n % 3)}:${10 + (n % 50)}:07 AM [vite] hmr update /src/failed/error-${n}.tsx`,
    failure: ['[vite] Internal server error: Failed to resolve import "./total" from "src/cart.ts"'],
    kept: '[vite] Internal server error: Failed to resolve import "./total" from "src/cart.ts"',
  },
  {
    name: "a dump that a database refuses",
    usual: (n) => `INSERT 0 ${n % 9}`,
    failure: ['psql:dump.sql:4711: ERROR:  duplicate key value violates unique constraint "users_pkey"'],
    kept: 'psql:dump.sql:4711: ERROR:  duplicate key value violates unique constraint "users_pkey"',
  },
  {
    name: "a push that was rejected",
    usual: (n) => ` * [new tag]         v0.${n}.0 -> v0.${n}.0`,
    failure: [" ! [rejected]        main -> main (non-fast-forward)"],
    kept: " ! [rejected]        main -> main (non-fast-forward)",
  },
  {
    name: "a host that does not answer",
    usual: (n) => `ok: [web${n}] => (item=error-pages)`,
    failure: ['fatal: [db1]: UNREACHABLE! => {"changed": false, "msg": "Connection closed"}'],
    kept: 'fatal: [db1]: UNREACHABLE! => {"changed": false, "msg": "Connection closed"}',
  },
  {
    name: "an example of RSpec",
    usual: (n) => `  handles failure ${n} of the cart (0.00${n % 10}s)`,
    failure: ["  1) Cart totals", "     Failure/Error: expect(total).to eq(42)", "       expected: 42"],
    kept: "     Failure/Error: expect(total).to eq(42)",
  },
  {
    name: "a program without a right",
    usual: (n) => `chown: changed ownership of '/srv/errors/${n}' to app`,
    failure: ["chown: changing ownership of '/srv/keys': Operation not permitted"],
    kept: "chown: changing ownership of '/srv/keys': Operation not permitted",
  },
  {
    name: "a schema that a document breaks",
    usual: (n) => `configs/error-${n}.yaml  valid`,
    failure: ["configs/cart.yaml  invalid: spec.replicas must be integer"],
    kept: "configs/cart.yaml  invalid: spec.replicas must be integer",
  },
];

const fourth: readonly OutputKind[] = [
  {
    name: "a deployment that waits",
    usual: (n) => `Waiting for deployment "cart" rollout to finish: ${n % 9} of 9 updated replicas are available...`,
    failure: ["0/12 nodes are available: 12 Insufficient memory."],
    kept: "0/12 nodes are available: 12 Insufficient memory.",
  },
  {
    name: "a stylesheet that breaks a rule",
    usual: (n) => `src/styles/error-${n}.css ok`,
    failure: ["src/styles/cart.css", ' 12:3  ✖  Unexpected unknown property "colr"  property-no-unknown'],
    kept: ' 12:3  ✖  Unexpected unknown property "colr"  property-no-unknown',
  },
  {
    name: "a download with another hash",
    usual: (n) => `Fetched https://mirror.local/failures/pool-${n}.deb [${n % 900} kB]`,
    failure: ["sha256 mismatch for openssl-3.2.tar.gz: expected 83c7329fe52c, got 0d9ff0c8a4b7"],
    kept: "sha256 mismatch for openssl-3.2.tar.gz: expected 83c7329fe52c, got 0d9ff0c8a4b7",
  },
  {
    name: "a query that is locked",
    usual: (n) => `migrating row ${n} of 20000: no errors`,
    failure: ["deadlock detected: process 812 waits for ShareLock on transaction 4711"],
    kept: "deadlock detected: process 812 waits for ShareLock on transaction 4711",
  },
  {
    name: "a benchmark that got slower",
    usual: (n) => `bench parse_failure_${n} ... ${n % 700} ns/iter (+/- ${n % 9})`,
    failure: ["regression: render_cart is 41 % slower than the base"],
    kept: "regression: render_cart is 41 % slower than the base",
  },
  {
    name: "a browser test without an element",
    usual: (n) => `  ✓  ${n} [chromium] › cart.spec.ts:${n} › shows the failure (${n % 90}ms)`,
    failure: [
      "  ✘  812 [chromium] › cart.spec.ts:31 › pays (30.1s)",
      "    waiting for getByRole('button', { name: 'Pay' })",
    ],
    kept: "    waiting for getByRole('button', { name: 'Pay' })",
  },
  {
    name: "a service that was stopped",
    usual: (n) => `Nov 18 09:00:${String(n % 60).padStart(2, "0")} web cart[812]: handled request ${n}`,
    failure: ["Nov 18 09:00:31 web systemd[1]: cart.service: Main process exited, code=killed, status=9/KILL"],
    kept: "Nov 18 09:00:31 web systemd[1]: cart.service: Main process exited, code=killed, status=9/KILL",
  },
  {
    name: "a scan that found a secret",
    usual: (n) => `scanned src/errors/file-${n}.ts in ${n % 20} ms`,
    failure: ["Finding: aws-access-token in src/deploy.ts:88"],
    kept: "Finding: aws-access-token in src/deploy.ts:88",
  },
  {
    name: "a name that nobody resolves",
    usual: log,
    failure: ["getaddrinfo: Temporary failure in name resolution (db.internal)"],
    kept: "getaddrinfo: Temporary failure in name resolution (db.internal)",
  },
  {
    name: "a translation that is missing",
    usual: (n) => `de.json: key errors.${n} translated`,
    failure: ["fr.json: key cart.total has no text"],
    kept: "fr.json: key cart.total has no text",
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

test.each([...first, ...second, ...third, ...fourth])("the page of $name has the line that matters", (kind) => {
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
