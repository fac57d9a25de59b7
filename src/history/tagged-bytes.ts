/** Bytes in JSON: images and files of the AI SDK, which JSON would write as an object with a field for every byte. */

const tag = "plimsoll:bytes";

/** The value with bytes as tagged base64; the same value where there are none. */
export function tagBytes(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) {
    return { [tag]: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  }
  if (value instanceof ArrayBuffer) return { [tag]: Buffer.from(value).toString("base64") };
  return mapFields(value, tagBytes);
}

/** The value with tagged base64 as a Uint8Array, whatever held the bytes before. */
export function restoreBytes(value: unknown): unknown {
  const base64 = Object(value)[tag] as unknown;
  return typeof base64 === "string"
    ? new Uint8Array(Buffer.from(base64, "base64"))
    : mapFields(value, restoreBytes);
}

function mapFields(value: unknown, map: (field: unknown) => unknown): unknown {
  if (Array.isArray(value)) {
    const mapped = value.map(map);
    return mapped.every((each, index) => each === value[index]) ? value : mapped;
  }
  // What has a prototype of its own, such as a URL, knows how it is written.
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const changes = Object.entries(value).flatMap(([name, field]) => {
    const mapped = map(field);
    return mapped === field ? [] : [[name, mapped] as const];
  });
  return changes.length === 0 ? value : { ...value, ...Object.fromEntries(changes) };
}
