import { frameNames } from "../envelope.ts";
import type { CompressInput, Compressor } from "./compressor.ts";

/** For tools without a compressor of their own: how much there was, then the beginning of the text as it is. */
export const genericCompressor: Compressor = ({ data }) => {
  const [name, items] = findItems(data) ?? ["items", []];
  if (items.length === 0) return JSON.stringify(ownFields(data)) + leftOut(data);
  const { total, returned, truncated } = data;
  const count = truncated === true ? `${returned} of ${total ?? "more"} ${name}: ` : "";
  return count + beginning(items);
};

/** More than an entry holds, so that nothing long is joined only to be cut. */
const enoughCharacters = 1_000;

function beginning(items: readonly unknown[]): string {
  let text = "";
  for (const item of items) {
    if (text.length > enoughCharacters) break;
    text += `${typeof item === "string" ? item : JSON.stringify(item)}\n`;
  }
  return text;
}

/** The items are the only list that counts what was returned; a field may be a list as well. */
function findItems(data: CompressInput["data"]): [string, readonly unknown[]] | undefined {
  const lists = Object.entries(data).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  return lists.findLast(([name, list]) => !frameNames.has(name) && list.length === data.returned);
}

function ownFields(data: CompressInput["data"]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !frameNames.has(name)));
}

/** Without it a result of large fields would read as an empty one. */
function leftOut({ left_out }: CompressInput["data"]): string {
  const { fields } = Object(left_out) as { readonly fields?: unknown };
  return Array.isArray(fields) ? `, left out: ${fields.join(", ")}` : "";
}
