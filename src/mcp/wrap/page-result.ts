import { type Delivered, type PageLimit, type Session, shareOfLimit } from "../../session/index.ts";
import { applyEdits, type JsonEdit, type JsonRange, memberOf, membersOf } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { RpcObject } from "../lines/rpc-message.ts";
import type { Background } from "./background.ts";
import { blocksOf, errorField, isMedia, itemizeResult, textOf } from "./itemize-result.ts";

export interface Paging {
  readonly session: Session;
  readonly counter: Counter;
  /** By tool name, instead of the session's own. */
  readonly toolTokens: Readonly<Record<string, number>>;
  readonly background: Background;
  pageLimit(): PageLimit;
  /** A page went out. */
  gave(page: Delivered): void;
}

export interface ResultCall {
  readonly tool: string;
  readonly args: RpcObject;
}

/** The message of a tool's result: as it came where it fits, else with the first page in the place of its content. Either way the
 *  session gets it, for the account and for recall; what passes as it came does not wait for the disk. */
export async function pageResult(
  message: string,
  result: RpcObject,
  { paging, call }: { paging: Paging; call: ResultCall },
): Promise<string> {
  const places = locate(message, result);
  const itemized = itemizeResult({ result, structuredText: places.structuredText });
  // First, so that no other field takes its room.
  const fields = result.isError === true ? { [errorField]: true, ...itemized.fields } : itemized.fields;
  const deliver = (shownTokens?: number): Promise<Delivered> =>
    paging.session.deliver({ ...itemized, fields, offset: 0 }, { ...call, shownTokens });
  const shown = [textsOf(result), places.structuredText ?? ""].map((text) =>
    countFitting(text, call, paging),
  );
  if (shown.every((tokens) => tokens !== undefined)) {
    // A client shows one of the two; which one is not known, and the account is to be on the safe side.
    await paging.background.add(() => deliver(Math.max(...shown)));
    return message;
  }
  await paging.background.settled();
  const page = await deliver();
  const { envelope, text } = page;
  if (envelope.status === "error") return message;
  paging.gave(page);
  const media = blocksOf(result).filter(isMedia);
  const edits: JsonEdit[] = [];
  if (places.content !== undefined) {
    edits.push({ ...places.content, text: JSON.stringify([{ type: "text", text }, ...media]) });
  }
  // Only where there was one: clients that show it alone would no longer show images.
  if (places.structured !== undefined) edits.push({ ...places.structured, text });
  return applyEdits(message, edits);
}

interface Places {
  readonly content: JsonRange | undefined;
  readonly structured: JsonRange | undefined;
  readonly structuredText: string | undefined;
}

function locate(message: string, { structuredContent }: RpcObject): Places {
  const members = membersOf(message, memberOf(message, 0, "result")!.value.start);
  const find = (name: string): JsonRange | undefined =>
    members.findLast((member) => member.name === name)?.value;
  const content = find("content");
  const hasData = typeof structuredContent === "object" && structuredContent !== null;
  const structured = hasData ? find("structuredContent") : undefined;
  return {
    content,
    structured,
    structuredText: structured && message.slice(structured.start, structured.end),
  };
}

/** With the most that clients put between two blocks. */
function textsOf(result: RpcObject): string {
  const texts = blocksOf(result).filter((block) => !isMedia(block));
  return texts.map(textOf).join("\n\n");
}

/** More is never let through, however few tokens it may be: counting it would take longer than paging it. */
const mostCharacters = 1_000_000;

/** The tokens of a text that the model may see as it came; undefined where it may not. Clients show it the text or the structured
 *  content, so each must fit. */
function countFitting(
  text: string,
  { tool }: ResultCall,
  { session, counter, toolTokens, pageLimit }: Paging,
): number | undefined {
  const limit = pageLimit();
  const { tokens: most = Number.POSITIVE_INFINITY } = limit;
  if (text.length > mostCharacters || shareOfLimit(text, limit) > 1) return undefined;
  const share = Object.hasOwn(toolTokens, tool) ? toolTokens[tool]! : session.forModel().per_tool_budget;
  const tokens = counter.count(text);
  return tokens <= Math.min(share, most) ? tokens : undefined;
}
