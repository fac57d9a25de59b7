/** The content that ships with the package: compiled and checked by the build, so that a run neither parses nor validates it. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ContextError } from "../../errors.ts";
import type { ContentLayer } from "./content-layer.ts";

/** From dist/ as installed; from src/, where tests run, the one that was built last. */
const places = ["../../content.json", "../../../dist/content.json"];

export function readEmbeddedContent<Adapter>(): ContentLayer<Adapter> {
  const paths = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const path = paths.find((each) => existsSync(each));
  if (path === undefined) {
    throw new ContextError("unreadable_input", "the embedded content is missing", {
      file: paths[0],
      hint: "Install plimsoll again; in a clone of its repository run npm run build.",
    });
  }
  return JSON.parse(readFileSync(path, "utf8"));
}
