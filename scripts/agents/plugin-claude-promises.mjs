/** What the plugin promises about money and silence, in the real Claude Code. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProvider } from "../provider/provider.mjs";
import { bash, converse, follow, linesOf, open, openTerminal, read, run, until, write } from "./claude-runs.mjs";

/** At a limit nothing runs: in `-p` the run ends before the tool, and in a terminal a person is asked once. */
export async function acceptGuard(context) {
  const { check } = context;
  const files = { "a.ts": linesOf("value", 50) };
  const openGuarded = async (onLimit) => {
    const place = await open(context, { files, install: ["--guard"] });
    write(join(place.home, ".config/plimsoll/config.yaml"), `guard: { session_usd: 0.02, on_limit: ${onLimit} }\n`);
    return place;
  };
  for (const onLimit of ["deny", "ask"]) {
    const place = await openGuarded(onLimit);
    const { code, requests, json } = await converse(place, { turns: [bash("touch one"), bash("touch two")] });
    check(!existsSync(join(place.project, "one")), `guard, ${onLimit}, -p: the tool did not run (exit ${code})`);
    check(requests.length === 1, `guard, ${onLimit}, -p: requests to the model: ${requests.length}`, json);
    const said = run(place, ["guard"]);
    check(/denied Bash in session .*has spent \$0\.\d\d of \$0\.02/.test(said), "plimsoll guard says why", said);
  }
  await acceptGuardedRun(context, await openGuarded("deny"));
  await acceptQuestion(context, await openGuarded("ask"));
}

async function acceptGuardedRun({ check }, place) {
  const model = await startProvider({ title: "A task", answer: follow([bash("touch one")]) });
  const env = { ...place.env, ANTHROPIC_BASE_URL: model.url };
  const args = [
    place.plimsoll,
    "run",
    "--agent",
    "claude",
    "--model",
    "claude-sonnet-4-5",
    "--allow",
    "edit",
    "TASK go",
  ];
  const child = await new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: place.project, env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
  await model.close();
  const isStopped = child.code === 1 && child.stderr.includes("a hook stopped it");
  check(isStopped && !existsSync(join(place.project, "one")), `plimsoll run ends with ${child.code}`, child);
}

/** The question before Bash has its reason. Before other tools the client shows none (2.1.327), and the conversation has
 *  it after the answer. After a yes nothing is asked until as much was spent again, or a person allowed more. */
async function acceptQuestion({ check }, place) {
  const isReason = (text) => /Plimsoll's spend guard: this session has\s+spent/.test(text);
  const turns = [read("a.ts"), bash("ls"), read("a.ts"), bash("touch three")];
  const terminal = await openTerminal(place, { decide: follow(turns) });
  const { screen } = terminal;
  const answer = async (question) => {
    await until(() => question.test(screen()));
    const asked = screen();
    terminal.press("Enter");
    return asked;
  };
  try {
    await terminal.say("TASK go");
    await answer(/Read\(\S+a\.ts\)[\s\S]*Do you want/);
    await until(() => isReason(screen()));
    check(isReason(screen()), "after Read: the conversation has the reason", screen());
    const second = await answer(/touch three[\s\S]*Do you want/);
    check(terminal.requests().length === 4, "after a yes, two calls run without a question", second);
    check(isReason(second), "before Bash: the question has the reason", second);
    await until(() => screen().includes("Done."));
    const said = run(place, ["guard", "allow", "5"]);
    check(/may go on: session up to \$5\.\d\d/.test(said), `guard allow 5: ${said.trim()}`);
    await terminal.say("TASK again");
    await until(() => terminal.requests().length > 5);
    check(!/Do you want/.test(screen()), "after guard allow nothing is asked", screen());
  } finally {
    await terminal.close();
  }
}

/** A process that cannot start once: Claude Code then skips it for 15 minutes, and everything of ours says so. */
export async function acceptSilence(context) {
  const { check } = context;
  const place = await open(context, { files: { "a.ts": linesOf("value", 200) } });
  const program = join(place.home, "bin/plimsoll");
  rmSync(program);
  const isBroken = join(place.home, "broken");
  write(isBroken, "");
  const script = `#!/bin/sh\n[ -e ${isBroken} ] && exit 1\nexec node ${place.plimsoll} "$@"\n`;
  writeFileSync(program, script, { mode: 0o755 });
  // On a busy computer the process is not there for the first ones.
  const turns = Array.from({ length: 8 }, () => read("a.ts"));
  const isShort = ({ results }) => results.some((text) => text.includes(": Same text as"));
  const broken = await converse(place, { turns });
  rmSync(isBroken);
  const status = run(place, ["plugin", "status", "claude-code"]);
  check(/^inactive since .*15 minutes/m.test(status), `status: ${status.split("\n")[1]?.slice(0, 60)}`, status);
  const line = execFileSync(process.execPath, [place.plimsoll, "statusline"], { env: place.env, input: "{}" });
  check(String(line).includes("plugin inactive since "), `status line: ${line}`);
  const skipped = await converse(place, { turns });
  check(!isShort(broken) && !isShort(skipped), "the next session does not start the process");
  run(place, ["plugin", "install", "claude-code"]);
  const mended = await converse(place, { turns });
  check(isShort(mended), "after install it works again", mended.results);
  const said = run(place, ["plugin", "status", "claude-code"]);
  check(!said.includes("inactive") && said.includes("last result seen: "), "status: the last result", said);
}
