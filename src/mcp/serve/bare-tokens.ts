import type { Delivered, ToolFailure } from "../../session/index.ts";

/** What `offset:100` means. Pages say `r12:offset:100`, but they also say `Use offset=100`, and some models make a token of that. It is
 *  taken where only one page can be meant; a guess could go on with another file. */
export interface BareTokens {
  /** A page went out. */
  given(delivered: Delivered): void;
  /** The whole token, the same for one that is whole already. A failure where no page, or more than one, is meant. */
  resolve(token: string): string | ToolFailure;
}

/** By offset. Kept as long as the process: a page that is forgotten would make another one look like the only one. */
type GivenTokens = Map<string, { readonly newest: string; readonly count: number }>;

export function createBareTokens(): BareTokens {
  const tokens: GivenTokens = new Map();
  return {
    given({ envelope }) {
      const token = envelope.status === "success" ? envelope.data.continuation_token : undefined;
      const offset = /^r\d+:offset:(\d+)$/.exec(token ?? "")?.[1];
      if (token === undefined || offset === undefined) return;
      const before = tokens.get(offset);
      const count = before?.newest === token ? before.count : (before?.count ?? 0) + 1;
      tokens.set(offset, { newest: token, count });
    },
    resolve(token) {
      const offset = /^offset:(\d{1,15})$/.exec(token)?.[1];
      if (offset === undefined) return token;
      const found = tokens.get(offset);
      return found?.count === 1 ? found.newest : unclear(offset, found);
    },
  };
}

function unclear(offset: string, found: { newest: string; count: number } | undefined): ToolFailure {
  const again = `call the tool itself again with offset=${offset}.`;
  if (found === undefined) {
    const message = `no result of this server goes on with offset:${offset}`;
    return { code: "invalid_token", message, hint: `Pass a continuation_token as it came, or ${again}` };
  }
  const message = `${found.count} results go on with offset:${offset}`;
  const example = `such as ${found.newest} of the newest one`;
  return {
    code: "ambiguous_token",
    message,
    hint: `Pass the continuation_token as it came, ${example}, or ${again}`,
  };
}
