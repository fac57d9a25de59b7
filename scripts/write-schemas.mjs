/** Writes schemas/ from the built code. A test fails while the committed files differ from it. Run after a build. */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { adapterFileSchema } from "../dist/adapters/adapter-schema.js";
import { nebulaSchemas } from "../dist/nebula/nebula-files.js";
import { packSchemas } from "../dist/packs/schema.js";
import { configJsonSchema } from "../dist/workspace/config-file.js";

const directory = fileURLToPath(new URL("../schemas/", import.meta.url));
mkdirSync(directory, { recursive: true });
write("config", configJsonSchema());
for (const [name, schema] of Object.entries({ ...packSchemas, ...nebulaSchemas, adapter: adapterFileSchema })) {
  write(name, z.toJSONSchema(schema, { io: "input" }));
}

function write(name, schema) {
  writeFileSync(`${directory}${name}.schema.json`, `${JSON.stringify(schema, null, 2)}\n`);
}
