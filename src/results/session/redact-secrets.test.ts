import { expect, test } from "vitest";
import { redactSecrets } from "./redact-secrets.ts";
import { harmlessLines, harmlessTexts, secretSamples } from "./secret-corpus.contract.ts";

const random = "a8Kd03mZq91LxW7vBt5R";

test("hides values that look like secrets and keeps the text around them", () => {
  const cases: readonly [string, string][] = [
    [`API_KEY=${random}`, "API_KEY=[redacted]"],
    ["DB_PASSWORD=hunter2x", "DB_PASSWORD=[redacted]"],
    [`DB_PASSWORD="correct horse" x`, `DB_PASSWORD="[redacted]" x`],
    [`STRIPE=${random}`, "STRIPE=[redacted]"],
    [`"token": "${random}",`, `"token": "[redacted]",`],
    [`accessKey: ${random}`, "accessKey: [redacted]"],
    [`password: 'hunter22'`, `password: '[redacted]'`],
    [`secret = s3cretive`, "secret = [redacted]"],
    ["see AKIAIOSFODNN7EXAMPLE.", "see [redacted]."],
    [`ghp_${random}, xoxb-${random}`, "[redacted], [redacted]"],
    [`sk-ant-api03-${random} npm_${random}${random}`, "[redacted] [redacted]"],
    [`eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${random}`, "[redacted]"],
    ["postgres://ada:lovelace@db/x", "postgres://[redacted]@db/x"],
    [`Authorization: Bearer ${random}`, "Authorization: Bearer [redacted]"],
    [
      "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nx\n-----END RSA PRIVATE KEY-----\nb",
      "a\n[redacted]\n[redacted]\n[redacted]\n[redacted]\nb",
    ],
    ["-----BEGIN PRIVATE KEY-----\nMIIEcut", "[redacted]\n[redacted]"],
    [`+${"MIIEpAIBAAKCAQEAq8Zt".repeat(3)}`, "+[redacted]"],
  ];
  for (const [given, wanted] of cases) expect(redactSecrets(given)).toBe(wanted);
});

test("keeps code, prose, paths, hashes and plimsoll's own tokens", () => {
  const texts = [
    "export function createToken(options: Options): string {",
    "password: string; secret: boolean; const token = readToken(file);",
    '{"token":"offset:100"} {"token":"r12:offset:0+684"} {"continuation_token":"r1000:offset:270"}',
    "commit 8179a92d3c1f0e5b6a7d8c9e0f1a2b3c4d5e6f70",
    "src/session/state/stored-results.ts:14 import { storedLimits } from './result-record.ts'",
    "https://example.com:8080/a@b basic configuration-options MAX_TOKENS=8000 PATH=/usr/local/bin:/usr/bin",
    "tokens: 12,345 of 100,000; author: Ada Lovelace <ada@example.org>",
  ];
  for (const text of texts) expect(redactSecrets(text)).toBe(text);
});

test.each(secretSamples)("hides a secret: %s", (form, text, secret) => {
  const shown = redactSecrets(text);
  expect(shown).toContain("[redacted]");
  expect(shown).not.toContain(secret);
  expect(shown.split("\n").length).toBe(text.split("\n").length);
  expect(redactSecrets(shown)).toBe(shown);
  if (form === "line of a key") return;
  const inside = JSON.stringify(`before\n${text}\nafter`);
  expect(redactSecrets(inside)).not.toContain(secret);
});

test("changes no harmless text", () => {
  expect(harmlessTexts.length).toBeGreaterThan(40);
  for (const text of harmlessTexts) expect(redactSecrets(text)).toBe(text);
});

test("changes no line of lock files, hashes, ids and logs of tests", () => {
  const lines = harmlessLines();
  expect(lines.length).toBeGreaterThan(200);
  for (const line of lines) expect(redactSecrets(line)).toBe(line);
  expect(redactSecrets(lines.join("\n"))).toBe(lines.join("\n"));
});

test("a long text of anything is checked quickly", () => {
  const length = process.env.PLIMSOLL_DEEP === "1" ? 1_000_000 : 200_000;
  const mostMs = length / 2_000;
  const parts = [
    ..."aA0_-=:/ \n\\.~$'\"".split(""),
    ...["TOKEN=", "TOKEN='", 'SECRET="', "A=", "AB_", "eyJ", "-eyJ", "eyJa.", "-----BEGIN PRIVATE KEY-----", "-----"],
    ...[
      "-----BEGIN PRIVATE KEY-----\nMIIE",
      "://a:",
      "://",
      "Bearer ",
      "Basic YTpi",
      "password: ",
      "password",
      "token: ",
    ],
    ...[
      "sk-",
      "xoxb-",
      "ghp_",
      "AKIA",
      "MIIE/",
      random,
      "SG.",
      "MTIz.",
      "s.a1",
      "1/4829105736482",
      "A1.",
      "a1Q~",
      ...["AA0=", "t1.a1", "perm:a1.", "pat.a1", "eyJrIjoi", "API-A1", "YCa1", "AQVN"],
    ],
    ...[" -p1", " -u a:b", "curl -u ", "curl ", " --password ", "--a-", "cookie: a=", "login a password ", "a:*:a:a:"],
    ...[
      'password\\\\\\"',
      "key-data: a1B2",
      "auth: YTpiY2Rl",
      "LS0tLS1CRUdJTi",
      "xoxe.xoxe.",
      "pat-na1-",
      "?sig=a1B2c3",
    ],
    "const value = readFile(path, { encoding: 'utf8' });\n",
  ];
  for (const part of parts) {
    const text = part.repeat(Math.ceil(length / part.length));
    redactSecrets(text.slice(0, 10_000));
    // A megabyte takes at most 150 ms of processor time on an idle machine, and may take 500 ms. Quadratic time would be minutes,
    // and seconds for the everyday length. A busy machine gets more attempts.
    let fastest = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < 10 && fastest >= mostMs; attempt++) {
      const before = process.cpuUsage();
      redactSecrets(text);
      fastest = Math.min(fastest, process.cpuUsage(before).user / 1_000);
    }
    expect(fastest, JSON.stringify(part)).toBeLessThan(mostMs);
  }
});
