/** Checked reads of foreign JSON: each failure is an `invalid_message` that names the JSON path. */
import { ContextError } from "../errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

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

/** The value as the JSON that a provider sees; an absent value is an empty text. */
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
  return failAt(`${path}.role`, `"${role}" is no role of this format; roles are ${roles.join(", ")}`);
}

/** Throws what every check here throws. */
export function failAt(path: string, problem: string, cause?: unknown): never {
  throw new ContextError("invalid_message", `${path} ${problem}`, { cause });
}

/** What a value is, in an error: `an array`, `a number`, `null`. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
