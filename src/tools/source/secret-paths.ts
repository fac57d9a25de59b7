/** Files that usually hold secrets: their names may be told, their contents are not. */
import { stat } from "node:fs/promises";
import type { ToolFailure } from "../../session/index.ts";
import { isSecretName } from "../../text/index.ts";
import { failure, shown } from "../frame/failure.ts";
import { listNames, numbered, shortened } from "../frame/phrases.ts";
import type { Place } from "../frame/run.ts";
import type { ContainedPath } from "./contained-path.ts";

/** By any of its names, all relative to the root: that of a link says nothing of what it leads to. */
export function isSecretPath({ isSecret = isSecretName }: Place, ...names: readonly string[]): boolean {
  return names.some((name) => isSecret(name));
}

/** The refusal of a file that was named; undefined where it may be shown. A folder may be called `secrets`. */
export async function refuseSecret(
  place: Place,
  { path, real, realPath }: ContainedPath,
): Promise<ToolFailure | undefined> {
  if (!isSecretPath(place, path, realPath)) return undefined;
  if ((await stat(real).catch(() => undefined))?.isDirectory()) return undefined;
  const leads = path === realPath ? "" : `, which leads to ${shown(realPath)},`;
  const hint = "Ask the person. `allow` in Plimsoll's configuration lets a file be shown.";
  return failure("denied", `${shown(path)}${leads} usually holds secrets and is not shown.`, hint);
}

/** `2 files were not searched`, and why; undefined where there is none. */
export function secretWarning(paths: readonly string[], what: "searched" | "shown"): string | undefined {
  if (paths.length === 0) return undefined;
  const names = listNames(
    paths.map((path) => shortened(path, 80)),
    3,
  );
  const files = numbered(paths.length, ["file was", "files were"]);
  return `${files} not ${what}, as ${paths.length === 1 ? "it usually holds" : "they usually hold"} secrets: ${names}.`;
}
