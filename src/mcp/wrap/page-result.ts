import type { CallShare } from "../../budget/index.ts";
import { type Delivered, type PageLimit, type Session, shareOfLimit } from "../../session/index.ts";
import {
  applyEdits,
  elementsOf,
  type JsonEdit,
  type JsonRange,
  memberOf,
  membersOf,
} from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { RpcObject } from "../lines/rpc-message.ts";
import type { Background } from "./background.ts";
import { blocksOf, errorField, isMedia, itemizeResult, textOf } from "./itemize-result.ts";

export interface Paging {
  readonly session: Session;
  readonly counter: Counter;
  readonly background: Background;
  pageLimit(): PageLimit;
  /** A page went out. */
  gave(page: Delivered): void;
  /** False where the store cannot be used. */
  isKept(): boolean;
  /** What the client must know, once. */
  takeNotice(): string | undefined;
  /** How long a result that is larger than its fair share waits for those of the calls beside it. */
  patience?: (() => Promise<void>) | undefined;
}

export interface ResultCall {
  readonly tool: string;
  readonly args: RpcObject;
  /** Since the call went to the server. */
  readonly share?: CallShare | undefined;
}

export interface PagedCall {
  readonly paging: Paging;
  readonly call: ResultCall;
}

/** The message of a tool's result: as it came where it fits, else with the first page in the place of its content. Either way the
 *  session gets it, for the account and for recall; what passes as it came does not wait for the disk. */
export async function pageResult(
  message: string,
  result: RpcObject,
  { paging, call }: PagedCall,
): Promise<string> {
  const share = call.share ?? paging.session.beginCall(call.tool);
  try {
    // What is not kept cannot be asked for again: a page would lose the rest.
    const isKept = paging.isKept();
    if (!isKept) share.end();
    const text = isKept ? await fitResult(message, result, { paging, call, share }) : message;
    const notice = paging.takeNotice();
    return notice === undefined ? text : addNotice(text, notice);
  } catch (error) {
    share.end();
    throw error;
  }
}

async function fitResult(
  message: string,
  result: RpcObject,
  { paging, call: { tool, args }, share }: PagedCall & { readonly share: CallShare },
): Promise<string> {
  const places = locate(message, result);
  const itemized = itemizeResult({ result, structuredText: places.structuredText });
  // First, so that no other field takes its room.
  const fields = result.isError === true ? { [errorField]: true, ...itemized.fields } : itemized.fields;
  const deliver = (shownTokens?: number): Promise<Delivered> =>
    paging.session.deliver({ ...itemized, fields, offset: 0 }, { tool, args, share, shownTokens });
  const shown = countShown([textsOf(result), places.structuredText ?? ""], share, paging);
  const granted = await share.settle(shown ?? share.mostTokens, paging.patience);
  if (shown !== undefined && granted >= shown) {
    await paging.background.add(() => deliver(shown));
    return message;
  }
  await paging.background.settled();
  const page = await deliver();
  const { envelope, text } = page;
  if (envelope.status === "error" || !paging.isKept()) return message;
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

/** As a text block behind the others. */
function addNotice(message: string, notice: string): string {
  const result = memberOf(message, 0, "result");
  const content = result && memberOf(message, result.value.start, "content")?.value;
  if (content === undefined || message[content.start] !== "[") return message;
  const block = JSON.stringify({ type: "text", text: `[plimsoll] ${notice}` });
  const elements = elementsOf(message, content.start);
  const at = elements.at(-1)?.end ?? content.start + 1;
  return applyEdits(message, [{ start: at, end: at, text: elements.length > 0 ? `,${block}` : block }]);
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

/** The tokens of a result that the model may see as it came; undefined where it may not. A client shows the text or the structured
 *  content. Which one is not known, so each must fit, and the larger one counts. */
function countShown(
  texts: readonly string[],
  { mostTokens }: CallShare,
  { counter, pageLimit }: Paging,
): number | undefined {
  const limit = pageLimit();
  if (texts.some((text) => text.length > mostCharacters || shareOfLimit(text, limit) > 1)) return undefined;
  const tokens = Math.max(...texts.map((text) => counter.count(text)));
  return tokens <= mostTokens ? tokens : undefined;
}
