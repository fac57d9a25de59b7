/** Ten kinds of output that were written after the rules of intake, without a look at them. Each has one line or a few
 *  that a person would look for, in the middle or at the end of what nobody reads. When they first ran, 22 of these 23
 *  lines were kept. The other one is the top frame below a sanitizer's report, which is not asked for here. */

export interface CommandOutput {
  readonly kind: string;
  readonly command: string;
  readonly text: string;
  /** What must be left of it. */
  readonly needles: readonly string[];
}

const repeat = (count: number, line: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => line(index));

/** Pseudo-random, and the same in every run. */
const pick = <T>(values: readonly T[], index: number): T => values[(index * 7919 + 13) % values.length]!;

const modules = ["auth", "billing", "cart", "catalog", "checkout", "email", "invoice", "ledger", "orders", "search"];

export const laterKinds: readonly CommandOutput[] = [
  {
    kind: "gradle build whose test worker runs out of heap",
    command: "./gradlew build",
    text: [
      "Starting a Gradle Daemon (subsequent builds will be faster)",
      ...repeat(
        700,
        (i) =>
          `> Task :${pick(modules, i)}:${pick(["compileJava", "processResources", "classes", "jar", "javadoc"], i)}${i % 4 === 0 ? " UP-TO-DATE" : ""}`,
      ),
      "> Task :ledger:test",
      ...repeat(400, (i) => `LedgerTest > postsEntry${i}() PASSED`),
      "java.lang.OutOfMemoryError: Java heap space",
      "\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)",
      ...repeat(60, (i) => `\tat com.acme.ledger.Snapshot.copy${i}(Snapshot.java:${100 + i})`),
      ...repeat(500, (i) => `> Task :${pick(modules, i + 3)}:${pick(["test", "check", "assemble"], i)}`),
      "",
      "FAILURE: Build failed with an exception.",
      "",
      "* What went wrong:",
      "Execution failed for task ':ledger:test'.",
      "> Process 'Gradle Test Executor 4' finished with non-zero exit value 137",
      "",
      "BUILD FAILED in 4m 12s",
      "[exit code 1]",
    ].join("\n"),
    needles: ["java.lang.OutOfMemoryError: Java heap space", "Execution failed for task ':ledger:test'"],
  },
  {
    kind: "linker of a Rust project without a system library",
    command: "cargo build --release",
    text: [
      ...repeat(
        420,
        (i) =>
          `   Compiling ${pick(modules, i)}-${pick(["core", "derive", "sys", "macros", "util"], i)} v${i % 9}.${i % 13}.${i % 7}`,
      ),
      "error: linking with `cc` failed: exit status: 1",
      "  |",
      `  = note:  "cc" "-m64" ${repeat(600, (i) => `"/app/target/release/deps/app-${i.toString(16)}.rcgu.o"`).join(" ")}`,
      "  = note: /usr/bin/ld: cannot find -lssl: No such file or directory",
      "          collect2: error: ld returned 1 exit status",
      "",
      'error: could not compile `app` (bin "app") due to 1 previous error',
      "[exit code 101]",
    ].join("\n"),
    needles: ["cannot find -lssl", "linking with `cc` failed"],
  },
  {
    kind: "pod that the kernel killed",
    command: "kubectl describe pods -n shop",
    text: repeat(60, (i) =>
      [
        `Name:             ${pick(modules, i)}-7d9f8b6c5-${(i * 7919).toString(36)}`,
        "Namespace:        shop",
        "Priority:         0",
        `Node:             node-${i % 5}/10.0.0.${i % 250}`,
        "Status:           Running",
        "Containers:",
        "  app:",
        `    Image:          registry/shop/${pick(modules, i)}:1.${i}`,
        ...(i === 37
          ? [
              "    State:          Waiting",
              "      Reason:       CrashLoopBackOff",
              "    Last State:     Terminated",
              "      Reason:       OOMKilled",
              "      Exit Code:    137",
            ]
          : ["    State:          Running", `      Started:      Mon, 16 Nov 2026 08:${10 + (i % 50)}:00 +0000`]),
        "    Ready:          True",
        `    Restart Count:  ${i === 37 ? 41 : 0}`,
        "    Limits:",
        "      memory:  512Mi",
        "    Mounts:",
        "      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access (ro)",
        "Events:          <none>",
        "",
      ].join("\n"),
    )
      .concat("[exit code 0]")
      .join("\n"),
    needles: ["OOMKilled", "CrashLoopBackOff"],
  },
  {
    kind: "end-to-end test that waits too long",
    command: "npx playwright test",
    text: [
      "Running 640 tests using 4 workers",
      "",
      ...repeat(640, (i) =>
        i === 411
          ? "  ✘  412 [chromium] › checkout.spec.ts:88:3 › checkout › pays with a saved card (30.1s)"
          : `  ✓  ${i + 1} [chromium] › ${pick(modules, i)}.spec.ts:${10 + (i % 90)}:3 › ${pick(modules, i)} › shows row ${i} (${(i % 90) / 10}s)`,
      ),
      "",
      "  1) [chromium] › checkout.spec.ts:88:3 › checkout › pays with a saved card ────────────",
      "",
      "    Test timeout of 30000ms exceeded.",
      "",
      "    Error: locator.click: Test timeout of 30000ms exceeded.",
      "    Call log:",
      "      - waiting for getByRole('button', { name: 'Pay now' })",
      ...repeat(300, (i) => `      -   retrying click action, attempt #${i + 1}`),
      "",
      "  1 failed",
      "    [chromium] › checkout.spec.ts:88:3 › checkout › pays with a saved card ────────────",
      "  639 passed (5.2m)",
      "[exit code 1]",
    ].join("\n"),
    needles: ["Test timeout of 30000ms exceeded", "getByRole('button', { name: 'Pay now' })", "1 failed"],
  },
  {
    kind: "service log in which the database refuses connections",
    command: "docker compose logs api",
    text: [
      ...repeat(
        2_000,
        (i) =>
          `api-1  | 2026-11-18T07:${String(10 + (Math.floor(i / 60) % 50))}:${String(i % 60).padStart(2, "0")}Z info  GET /${pick(modules, i)}/${i} 200 ${i % 90}ms`,
      ),
      "api-1  | 2026-11-18T07:43:21Z warn  pool: connect ECONNREFUSED 172.18.0.3:5432",
      ...repeat(
        2_000,
        (i) =>
          `api-1  | 2026-11-18T07:${String(44 + (Math.floor(i / 600) % 10))}:${String(i % 60).padStart(2, "0")}Z info  GET /${pick(modules, i + 5)}/${i} 200 ${i % 80}ms`,
      ),
      "[exit code 0]",
    ].join("\n"),
    needles: ["ECONNREFUSED 172.18.0.3:5432"],
  },
  {
    kind: "Python linter with a type checker after it",
    command: "make lint",
    text: [
      "ruff check .",
      ...repeat(
        500,
        (i) => `src/${pick(modules, i)}/views_${i}.py:${i % 300}:${i % 80}: E501 Line too long (${89 + (i % 40)} > 88)`,
      ),
      "src/ledger/post.py:41:12: F821 Undefined name `ammount`",
      ...repeat(
        500,
        (i) => `src/${pick(modules, i)}/tests_${i}.py:${i % 300}:${i % 80}: E501 Line too long (${89 + (i % 30)} > 88)`,
      ),
      "Found 1001 errors.",
      "mypy src",
      'src/billing/tax.py:88: error: Incompatible return value type (got "None", expected "Decimal")  [return-value]',
      "Found 1 error in 1 file (checked 812 source files)",
      "make: *** [Makefile:14: lint] Error 1",
      "[exit code 2]",
    ].join("\n"),
    needles: ["F821 Undefined name `ammount`", "src/billing/tax.py:88", "Found 1001 errors"],
  },
  {
    kind: "C++ program that ends with a segmentation fault under a sanitizer",
    command: "ctest --output-on-failure",
    text: [
      ...repeat(
        300,
        (i) =>
          `${String(i + 1).padStart(3)}/600 Test #${i + 1}: ${pick(modules, i)}_${i} ...................   Passed    0.0${i % 9} sec`,
      ),
      "301/600 Test #301: parser_deep ...................***Exception: SegFault  0.12 sec",
      "AddressSanitizer:DEADLYSIGNAL",
      "==4121==ERROR: AddressSanitizer: stack-overflow on address 0x7ffd3a (pc 0x55d0 bp 0x7ffd sp 0x7ffd T0)",
      ...repeat(240, (i) => `    #${i} 0x55d0${(i * 16).toString(16)} in parse_value(Parser*) /src/parser.cc:212`),
      ...repeat(
        299,
        (i) =>
          `${i + 302}/600 Test #${i + 302}: ${pick(modules, i)}_${i} ...................   Passed    0.0${i % 9} sec`,
      ),
      "",
      "99% tests passed, 1 tests failed out of 600",
      "",
      "The following tests FAILED:",
      "\t301 - parser_deep (SEGFAULT)",
      "Errors while running CTest",
      "[exit code 8]",
    ].join("\n"),
    needles: ["AddressSanitizer: stack-overflow", "parser_deep (SEGFAULT)"],
  },
  {
    kind: "playbook with a host that cannot be reached",
    command: "ansible-playbook site.yml",
    text: [
      ...repeat(90, (i) =>
        [
          `TASK [${pick(modules, i)} : step ${i}] ${"*".repeat(60)}`,
          ...repeat(12, (host) => `${i % 3 === 0 ? "changed" : "ok"}: [web-${host}]`),
          "",
        ].join("\n"),
      ),
      `TASK [deploy : restart] ${"*".repeat(60)}`,
      ...repeat(11, (host) => `changed: [web-${host}]`),
      'fatal: [web-11]: UNREACHABLE! => {"changed": false, "msg": "Failed to connect to the host via ssh: ssh: connect to host 10.0.3.11 port 22: No route to host", "unreachable": true}',
      "",
      `PLAY RECAP ${"*".repeat(60)}`,
      ...repeat(
        11,
        (host) => `web-${host}                      : ok=91   changed=31   unreachable=0    failed=0    skipped=0`,
      ),
      "web-11                     : ok=90   changed=30   unreachable=1    failed=0    skipped=0",
      "[exit code 4]",
    ].join("\n"),
    needles: ["fatal: [web-11]: UNREACHABLE!", "No route to host"],
  },
  {
    kind: "image build on a full disk",
    command: "docker build .",
    text: [
      ...repeat(
        800,
        (i) =>
          `#12 ${(i / 10).toFixed(1)} Get:${i + 1} http://127.0.0.1/debian bookworm/main amd64 ${pick(modules, i)}-dev amd64 1.${i} [${i} kB]`,
      ),
      ...repeat(600, (i) => `#12 ${(80 + i / 10).toFixed(1)} Unpacking ${pick(modules, i)}-dev (1.${i}) ...`),
      "#12 141.2 dpkg: error processing archive /var/cache/apt/archives/orders-dev_1.77_amd64.deb (--unpack):",
      "#12 141.2  cannot copy extracted data for './usr/lib/libx.a' to '/usr/lib/libx.a.dpkg-new': failed to write (No space left on device)",
      ...repeat(
        500,
        (i) => `#12 ${(142 + i / 10).toFixed(1)} Processing triggers for ${pick(modules, i)} (1.${i}) ...`,
      ),
      '#12 ERROR: process "/bin/sh -c apt-get install -y build-essential" did not complete successfully: exit code: 100',
      "------",
      'ERROR: failed to solve: process "/bin/sh -c apt-get install -y build-essential" did not complete successfully: exit code: 100',
      "[exit code 1]",
    ].join("\n"),
    needles: ["No space left on device", "did not complete successfully: exit code: 100"],
  },
  {
    kind: "migration that waits for a lock until its time is up",
    command: "npm run migrate",
    text: [
      "> shop@4.2.0 migrate",
      "> node scripts/migrate.js",
      "",
      ...repeat(
        900,
        (i) =>
          `applied ${String(i).padStart(4, "0")}_${pick(modules, i)}_${pick(["add_index", "drop_column", "backfill", "rename"], i)} (${i % 40} ms)`,
      ),
      "applying 0901_orders_backfill",
      ...repeat(
        900,
        (i) => `  rows ${i * 1000} to ${(i + 1) * 1000}: ${pick(["done", "done, 3 skipped", "done, 1 skipped"], i)}`,
      ),
      "canceling statement due to lock timeout",
      '  while locking tuple (1942,7) in relation "orders"',
      ...repeat(900, (i) => `rolled back rows ${i * 1000} to ${(i + 1) * 1000}`),
      "1 migration not applied",
      "npm error code ELIFECYCLE",
      "npm error errno 3",
      "[exit code 3]",
    ].join("\n"),
    needles: ["canceling statement due to lock timeout", 'in relation "orders"', "npm error code ELIFECYCLE"],
  },
];
