import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { listFieldKinds, readShape } from "./changing-fields.ts";
import { createIntake } from "./intake.ts";

test.each([
  ["✔ parses a list (1.234ms)", "✔ parses a list (27.5ms)", "durations"],
  ["    ✓ parses a list (12 ms)", "    ✓ parses a list", "durations"],
  ["      duration_ms: 75.613929", "      duration_ms: 8.1", "durations"],
  ["ok  \tgithub.com/a/b\t0.012s", "ok  \tgithub.com/a/b\t1.3s", "durations"],
  ["    PASS [   0.123s] core tests::parses", "    PASS [   1.200s] core tests::parses", "durations"],
  ["1/60 Test #1: parse ....   Passed    0.10 sec", "1/60 Test #1: parse ....   Passed    0.97 sec", "durations"],
  ["#7 DONE 0.3s", "#7 DONE 1.2s", "durations"],
  ["--- PASS: TestList (0.00s)", "--- PASS: TestList (1.32s)", "durations"],
  ["2026-11-19T03:40:11.123Z INFO ready", "2026-11-20T10:00:00.001Z INFO ready", "times"],
  ["[03:40:11] ready", "[23:59:59] ready", "times"],
  ["Nov 19 03:40:11 host ready", "Nov 12 23:00:00 host ready", "times"],
  ["started request_id=8f3a11 for a user", "started request_id=77aa for a user", "ids"],
  ["at 0x7ffd1234 in main", "at 0x7ffdabcd in main", "ids"],
  ["job 1b4e28ba-2fa1-11d2-883f-0016d3cca427 ended", "job 9d2a28ba-2fa1-11d2-883f-b9a761bde3fb ended", "ids"],
  ["ok 12 - parses", "ok 13 - parses", "counters"],
  ["Nov 19 03:40:11 host sshd[812]: ready", "Nov 19 03:40:11 host sshd[77]: ready", "counters"],
  [
    "\u001b[32m✓\u001b[39m a\u001b[32m 4\u001b[2mms\u001b[22m",
    "\u001b[32m✓\u001b[39m a\u001b[33m 300\u001b[2mms\u001b[22m",
    "durations",
  ],
])("%j and %j are alike but for %s", (one, other, kind) => {
  expect(readShape(one)).toBe(readShape(other));
  expect(listFieldKinds([one, other])).toContain(kind);
});

test.each([
  ["listening on port 8080", "listening on port 8081"],
  ["Tests  12 passed", "Tests  13 passed"],
  ["src/a.ts:12:40 error", "src/a.ts:12:41 error"],
  ["version 1.2.3", "version 1.2.4"],
  ["released on 2026-11-19", "released on 2026-11-20"],
  [`commit ${"8f3a1b2c4d".repeat(4)}`, `commit ${"9f3a1b2c4d".repeat(4)}`],
  ["8f3a1b2 Repair the build", "9f3a1b2 Repair the build"],
  ["const limit = 30;", "const limit = 31;"],
  ["status=200", "status=500"],
  ["processed 1,200 records", "processed 1,300 records"],
  // Settings, measurements and dates that the line is about.
  ["timeout: 30s", "timeout: 300s"],
  ["the token expires in 30 minutes", "the token expires in 90 minutes"],
  ["parse 1,000 files    12.3 ms", "parse 1,000 files    98.1 ms"],
  ["BenchmarkParse-8   1000   1234 ns/op", "BenchmarkParse-8   1000   9876 ns/op"],
  ["mean (12.3 ms)", "mean (98.1 ms)"],
  ["notAfter=2026-11-19T03:40:11Z", "notAfter=2036-11-19T03:40:11Z"],
  ["-rw-r--r-- 1 root root 12 Nov 19 03:40 sshd", "-rw-r--r-- 1 root root 12 Nov 12 10:11 sshd"],
  ["revenue 1700000000", "revenue 1900000000"],
  ["1700000000\t./data", "1900000000\t./data"],
  // Names of contents and of things.
  ["d41d8cd98f00b204e9800998ecf8427e  bin/sshd", "d41d8cd98f00b204e9800998ecf8427f  bin/sshd"],
  [`${"8f3a1b2c".repeat(16)}  bin/sshd`, `${"9f3a1b2c".repeat(16)}  bin/sshd`],
  ["balance 1000000000000000000", "balance 9000000000000000000"],
  ["owner_id=1000 mode=700", "owner_id=0 mode=700"],
  ['  "role_id": "7-reader",', '  "role_id": "8-admin",'],
  ["run_id=1-plain", "run_id=1-curl-evil-sh"],
  ["status 0x00000000", "status 0xc0000005"],
  // Positions and results.
  ["Merge pull request #12 from a/b", "Merge pull request #13 from a/b"],
  ["ok 12 packages are signed", "ok 3 packages are signed"],
  ["grants[0]: all", "grants[1]: all"],
  ['"vulnerabilities": [0]', '"vulnerabilities": [3]'],
  ["backup ended [0]", "backup ended [1]"],
  ["[7/7] tests passed", "[3/7] tests passed"],
  ["GET /users request 200", "GET /users request 500"],
  // The shape says where a field was left out, and of which kind it was.
  ["built in 3s, ended", "built in , ended"],
  ["built in 3s", "built in"],
  ["\u001b[31mnot signed\u001b[39m", "not signed"],
  [`2026-11-19T03:40:11Z ${"x".repeat(500)}`, `2026-11-19T03:40:12Z ${"x".repeat(500)}`],
])("%j and %j are different lines", (one, other) => {
  expect(readShape(one)).not.toBe(readShape(other));
});

const counter = await createCounter("estimate:claude-5");
const run = (text: string) => ({ tool: "Bash", input: { command: "npm test" }, text });
const testRun = (speed: number, failing?: number) =>
  Array.from({ length: 80 }, (_, n) =>
    n === failing
      ? `✕ reads the value number ${n} (${(n * speed) % 97} ms)\n  Error: it is ${speed}`
      : `✓ reads the value number ${n} (${(n * speed) % 97} ms)`,
  ).join("\n");

test("a second run of tests is one note, and a failure is shown as it is", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const first = await intake.admit(run(testRun(7)));
  const again = await intake.admit(run(testRun(11)));
  expect(again.text.replace(/[a-z2-7]{4}(?=[: ])/g, "mark").split("\n")[1]).toBe("[mark 1-80, but for durations]");
  expect(again.tokens).toBeLessThan(first.tokens * 0.15);
  expect(await intake.recall(again.id ?? "")).toBe(testRun(11));
  const failed = await intake.admit(run(testRun(13, 40)));
  expect(failed.text).toContain("✕ reads the value number 40 (35 ms)\n  Error: it is 13\n");
  const repeated = await intake.admit({ ...run(testRun(17, 40).replace("it is 17", "it is 13")), tool: "bash" });
  expect(repeated.text).toMatch(/repeated 42:\]\n {2}Error: it is 13\n/);
});

test("a few changed durations in a text that is otherwise the same are shown", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const settings = (timeout: number) =>
    Array.from(
      { length: 60 },
      (_, n) => `setting${n}: the value of ${n}${n % 20 === 10 ? ` is ${timeout}s` : ""}`,
    ).join("\n");
  await intake.admit(run(settings(30)));
  const { edit, text } = await intake.admit(run(settings(45)));
  expect(edit).toBe("delta");
  expect(text).not.toContain("but for");
  for (const n of [10, 30, 50]) expect(text).toContain(`setting${n}: the value of ${n} is 45s`);
});

test.each([
  ["Read", { file_path: "test.log" }],
  ["str_replace_based_edit_tool", { command: "view", path: "test.log" }],
])("numbers in files that %s shows always count", async (tool, input) => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const read = (text: string) => intake.admit({ tool, input, text });
  await read(testRun(7));
  expect((await read(testRun(11))).edit).toBe("none");
});

test.each([
  ["a file", "cat settings.yaml"],
  ["a file in a folder", "cd /project && cat settings.yaml"],
  ["a file through another shell", 'bash -lc "sed -n 1,80p settings.yaml"'],
  ["a file within a limit of time", "(timeout 60 cat settings.yaml)"],
  ["files that another program names", "xargs cat < files.txt"],
  ["lines of files", "grep -rn took src | head -80"],
  ["rows", "sqlite3 app.db 'select * from settings'"],
  ["what files contain", "find bin -type f | xargs md5sum"],
  ["a measurement", "npm run bench"],
  ["an answer of a server", "curl -s http://127.0.0.1:8080/settings"],
])("numbers count in output that is %s", async (_, command) => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const print = (text: string) => intake.admit({ tool: "Bash", input: { command }, text });
  await print(testRun(7));
  expect((await print(testRun(11))).text).not.toContain("but for");
});

test("numbers count in the rows that a tool returns", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const query = (text: string) => intake.admit({ tool: "execute_sql", input: { sql: "select 1" }, text });
  await query(testRun(7));
  expect((await query(testRun(11))).text).not.toContain("but for");
});

test("a test run that a filter shortens is still one", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const print = (text: string) =>
    intake.admit({ tool: "Bash", input: { command: "cd a && CI=1 npm test 2>&1 | tail -80" }, text });
  await print(testRun(7));
  expect((await print(testRun(11))).text).toContain("but for durations");
});

test("a note names the fields of both lines", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const lines = (change: (n: number) => string) => Array.from({ length: 80 }, (_, n) => change(n)).join("\n");
  await intake.admit(
    run(lines((n) => `\u001b[32m✓\u001b[39m reads the value number ${n} \u001b[2m(${n} ms)\u001b[22m`)),
  );
  const plain = await intake.admit(run(lines((n) => `✓ reads the value number ${n} (${n + 1} ms)`)));
  expect(plain.text).not.toContain("but for durations]");
  const short = await intake.admit(run(lines((n) => `✓ reads the value number ${n}`)));
  expect(short.text).toContain("but for durations]");
});
