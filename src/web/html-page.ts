/** One HTML file with style, script and data, which needs no network. Scripts only set text, and a content security
 *  policy blocks everything else, so names and content of recordings are always shown as text. */
import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { parse, relative, resolve } from "node:path";
import { ContextError, usageError } from "../core/errors.ts";
import { formatNumber, printable, toByteString } from "../core/text/index.ts";
import type { Caller } from "../host/index.ts";
import { changeFile } from "../host/index.ts";
import { pageAssets } from "./page-assets.ts";

/** `name` is the command that makes the page. Its script reads `data`, which is JSON, from the element `data`. */
export function renderHtml(name: "replay" | "bill", data: string): string {
  const { script, style } = pageAssets[name];
  const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    "img-src data:",
    `style-src ${hash(style)}`,
    `script-src ${hash(script)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  // Escapes JSON so that it cannot end its script element.
  const embedded = data.replace(
    /[<\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="plimsoll ${name}">
<link rel="icon" href="data:,">
<title>Plimsoll ${name}</title>
<style>${style}</style>
</head>
<body>
<noscript>This page needs its built-in script to draw tables and timelines.</noscript>
<div id="page"></div>
<script type="application/json" id="data">${embedded}</script>
<script>${script}</script>
</body>
</html>
`;
}

/** Throws if the page cannot be written: the target is a directory or one of the sessions. */
export async function checkPageTarget(
  target: string,
  { call, inputs }: { readonly call: Pick<Caller, "cwd" | "env">; readonly inputs: readonly string[] },
): Promise<void> {
  const path = resolve(call.cwd, target);
  const real = (file: string): Promise<string> => realpath(file).catch(() => file);
  const realTarget = await real(path);
  for (const input of inputs) {
    if ((await real(input)) !== realTarget) continue;
    throw usageError(`--html ${printable(target)} would overwrite a session`, "Name another file.");
  }
  await changePage(path, { ...call, dryRun: true, change: (current) => current ?? "" });
}

/** Writes a page and notes what it has. */
export async function writePage(
  target: string,
  { html, what }: { readonly html: string; readonly what: string },
  call: Caller,
): Promise<void> {
  const path = resolve(call.cwd, target);
  const bytes = toByteString(html);
  await changePage(path, { ...call, change: () => bytes });
  const size = `${formatNumber(Math.ceil(bytes.length / 1024))} KB`;
  call.output.note(`wrote ${printable(relative(call.cwd, path))}: ${what}, ${size}`);
}

/** Changes the page as a whole: after a crash, the file is the old one or the new one. */
async function changePage(
  path: string,
  {
    cwd,
    env,
    change,
    dryRun,
  }: Pick<Caller, "cwd" | "env"> & {
    readonly change: (current: string | undefined) => string;
    readonly dryRun?: boolean;
  },
): Promise<void> {
  try {
    await changeFile(path, { root: parse(path).root, env, change, dryRun });
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint } = error;
    throw new ContextError(code, message, { hint, file: relative(cwd, path) || ".", cause: error });
  }
}
