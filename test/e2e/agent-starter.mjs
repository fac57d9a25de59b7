/** Starts an agent and follows it, to be killed meanwhile. Arguments: folder, command. */
import { startAgent } from "../../dist/plans/agent/index.js";

const [folder = "", command = ""] = process.argv.slice(2);
const limits = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
process.stdout.write("ready\n");
const { end } = startAgent({
  command,
  prompt: "the prompt",
  folder,
  cwd: process.cwd(),
  env: process.env,
  ...limits,
});
const { outcome } = await end;
process.stdout.write(`${outcome}\n`);
