/** Files that usually have secrets. Their names may be shown, their contents may not. */
import { stat } from "node:fs/promises";
import { isSecretName } from "../../../core/text/index.ts";
import type { ToolFailure } from "../../session/index.ts";
import { failure, formatCount, listNames, quoteArgument, shortenLine, type ToolPlace } from "../run.ts";
import type { ContainedPath } from "./contained-path.ts";

/** Checks all names of the file, relative to the root, because a link's name says nothing about its target. */
export function isSecretPath({ isSecret = isSecretName }: ToolPlace, ...names: readonly string[]): boolean {
  return names.some((name) => isSecret(name));
}

/** Returns the refusal of a named file, or undefined if it may be shown. A folder may be called `secrets`. */
export async function refuseSecret(
  place: ToolPlace,
  { path, real, realPath }: ContainedPath,
): Promise<ToolFailure | undefined> {
  if (!isSecretPath(place, path, realPath)) return undefined;
  if ((await stat(real).catch(() => undefined))?.isDirectory()) return undefined;
  const leads = path === realPath ? "" : `, which leads to ${quoteArgument(realPath)},`;
  const hint = "Ask the user to add it to `allow` in Plimsoll's configuration.";
  return failure("denied", `${quoteArgument(path)}${leads} usually contains secrets and is not shown.`, hint);
}

/** `2 files were not searched`, and why. Undefined if there are none. */
export function secretWarning(paths: readonly string[], what: "searched" | "shown"): string | undefined {
  if (paths.length === 0) return undefined;
  const names = listNames(
    paths.map((path) => shortenLine(path, 80)),
    3,
  );
  const files = formatCount(paths.length, ["file was", "files were"]);
  return `${files} not ${what}, because ${paths.length === 1 ? "it usually contains" : "they usually contain"} secrets: ${names}.`;
}
