/** Writes schemas/ from the built code. A test fails while the committed files differ from it. Run after a build. */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { configJsonSchema } from "../dist/workspace/config-schema.js";

const directory = fileURLToPath(new URL("../schemas/", import.meta.url));
mkdirSync(directory, { recursive: true });
writeFileSync(`${directory}config.schema.json`, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
