/** Checked reads of foreign JSON: each failure is an `invalid_message` that names the JSON path. */
import { ContextError } from "../errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsAt(value: unknown, path: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  return fail(path, `must be an object, not ${nameOf(value)}`);
}

export function stringAt(fields: Fields, key: string, path: string): string {
  const value = fields[key];
  if (typeof value === "string") return value;
  return fail(`${path}.${key}`, `must be a string, not ${nameOf(value)}`);
}

export function textOrListAt(value: unknown, path: string): string | readonly unknown[] {
  if (typeof value === "string" || Array.isArray(value)) return value;
  return fail(path, `must be a string or an array, not ${nameOf(value)}`);
}

/** The value as the JSON that a provider sees; an absent value is an empty text. */
export function jsonAt(value: unknown, path: string): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (cause) {
    return fail(path, "cannot be written as JSON", cause);
  }
}

export function roleAt<Role extends string>(message: Fields, roles: readonly Role[], path: string): Role {
  const role = stringAt(message, "role", path);
  if ((roles as readonly string[]).includes(role)) return role as Role;
  return fail(`${path}.role`, `"${role}" is no role of this format; roles are ${roles.join(", ")}`);
}

export function fail(path: string, problem: string, cause?: unknown): never {
  throw new ContextError("invalid_message", `${path} ${problem}`, { cause });
}

export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
