/** Checked reads of foreign JSON. Each failure is an `invalid_message` error with the JSON path. */

import { ContextError } from "../errors.ts";
import type { Fields } from "../text/index.ts";

export function fieldsAt(value: unknown, path: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  return failAt(path, `must be an object, not ${typeName(value)}`);
}

export function stringAt(fields: Fields, key: string, path: string): string {
  const value = fields[key];
  if (typeof value === "string") return value;
  return failAt(`${path}.${key}`, `must be a string, not ${typeName(value)}`);
}

export function textOrListAt(value: unknown, path: string): string | readonly unknown[] {
  if (typeof value === "string" || Array.isArray(value)) return value;
  return failAt(path, `must be a string or an array, not ${typeName(value)}`);
}

/** Writes the value as the JSON that a provider sees. An absent value becomes an empty text. */
export function jsonAt(value: unknown, path: string): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (cause) {
    return failAt(path, "cannot be written as JSON", cause);
  }
}

export function roleAt<Role extends string>(message: Fields, roles: readonly Role[], path: string): Role {
  const role = stringAt(message, "role", path);
  if ((roles as readonly string[]).includes(role)) return role as Role;
  return failAt(`${path}.role`, `"${role}" is not a role of this format; roles are ${roles.join(", ")}`);
}

/** Throws the error that all checks in this file throw. */
export function failAt(path: string, problem: string, cause?: unknown): never {
  throw new ContextError("invalid_message", `${path} ${problem}`, { cause });
}

/** Describes a value for an error: `an array`, `a number`, `null`. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Fields that mark where a provider's cache may end. They move from call to call, are not content, and are not
 *  billed. */
export const cacheMarkers = [
  "cache_control", // Anthropic
  "cacheControl", // Anthropic through the AI SDK
  "prompt_cache_breakpoint", // OpenAI
  "cachePoint", // Bedrock
] as const;

const markerNames: ReadonlySet<string> = new Set(cacheMarkers);

export function isCacheMarker(name: string): boolean {
  return markerNames.has(name);
}

/** Returns the same object if it has no marker. */
export function withoutCacheMarkers(fields: Fields): Fields {
  if (!cacheMarkers.some((name) => name in fields)) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !isCacheMarker(name)));
}
