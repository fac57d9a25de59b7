/** Writes schemas/ from the built code. A test fails while the committed files differ from it. Run after a build. */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { companyConfigSchema, configJsonSchema } from "../dist/host/config/config-file.js";
import { nebulaSchemas } from "../dist/plans/nebula/nebula-files.js";
import { adapterFileSchema } from "../dist/rules/adapters/adapter-schema.js";
import { packSchemas } from "../dist/rules/packs/schema.js";

const directory = fileURLToPath(new URL("../schemas/", import.meta.url));
mkdirSync(directory, { recursive: true });
write("config", configJsonSchema());
const others = { company: companyConfigSchema, adapter: adapterFileSchema };
for (const [name, schema] of Object.entries({ ...packSchemas, ...nebulaSchemas, ...others })) {
  write(name, z.toJSONSchema(schema, { io: "input" }));
}

function write(name, schema) {
  writeFileSync(`${directory}${name}.schema.json`, `${JSON.stringify(schema, null, 2)}\n`);
}
