import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, resolve } from "node:path";
import { ContextError } from "../errors.ts";
import type { Environment } from "../workspace/index.ts";

export interface CommandPlace {
  readonly cwd: string;
  readonly env: Environment;
}

/** Refuses a command that cannot run, before anything does. Only a first word that stands for itself can be judged. */
export async function checkAgentCommand(line: string, place: CommandPlace): Promise<void> {
  if (line.trim() === "") throw new ContextError("usage", "the agent's command is empty");
  if (line.includes("\0")) throw new ContextError("usage", "the agent's command has a NUL character in it");
  const word = plainWord.exec(line)?.[1];
  if (word === undefined) return;
  const refusal = word.includes("/") ? await refusedPath(word, place) : await refusedName(word, place);
  if (refusal === undefined) return;
  const { reason, hint } = refusal;
  throw new ContextError("usage", `the agent's command "${word}" cannot be run: ${reason}`, {
    hint: hint ?? "Install it, or name another with --agent or --agent-command.",
  });
}

interface Refusal {
  readonly reason: string;
  readonly hint?: string | undefined;
}

async function refusedPath(word: string, { cwd }: CommandPlace): Promise<Refusal | undefined> {
  const path = resolve(cwd, word);
  const kind = await kindOf(path);
  if (kind === "program") return undefined;
  if (kind === "file") return notExecutable(path);
  if (kind === "other") return { reason: `${path} is no file` };
  return {
    reason: isAbsolute(word) ? "there is no such program" : `there is no such program, seen from ${cwd}`,
  };
}

async function refusedName(word: string, place: CommandPlace): Promise<Refusal | undefined> {
  if (await isKnown(word, place)) return undefined;
  for (const path of pathsOf(word, place)) if ((await kindOf(path)) === "file") return notExecutable(path);
  const reason = "there is no such program on PATH";
  const kind = await kindOf(resolve(place.cwd, word));
  if (kind !== "program" && kind !== "file") return { reason };
  const chmod = kind === "file" ? `, and allow to run it: chmod +x ${resolve(place.cwd, word)}` : "";
  return { reason, hint: `There is one in ${place.cwd}: name it "./${word}"${chmod}.` };
}

function notExecutable(path: string): Refusal {
  return { reason: `${path} may not be executed`, hint: `Allow it: chmod +x ${path}` };
}

/** Without quotes, expansions or an assignment. */
const plainWord = /^\s*([\w./+:@%,-]+)(?=[\s;&|<>]|$)/;

async function kindOf(path: string): Promise<"program" | "file" | "other" | undefined> {
  try {
    if (!(await stat(path)).isFile()) return "other";
  } catch {
    return undefined;
  }
  return access(path, constants.X_OK).then(
    () => "program",
    () => "file",
  );
}

function pathsOf(word: string, { cwd, env }: CommandPlace): string[] {
  return (env.PATH ?? "").split(delimiter).map((folder) => resolve(cwd, folder, word));
}

/** Asked of the shell that will run it: it knows its own words, and what a relative entry of PATH means. */
function isKnown(word: string, { cwd, env }: CommandPlace): Promise<boolean> {
  return new Promise((settle) => {
    const args = ["-c", 'command -v -- "$1"', "sh", word];
    execFile("/bin/sh", args, { cwd, env: { ...env } }, (error) => settle(error === null));
  });
}
