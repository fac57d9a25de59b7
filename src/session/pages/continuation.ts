/** How to ask for what a page left out. `offset:100` is for the tool itself and needs no memory; what begins with a result's id is
 *  for a stored result:
 *
 *  r42:offset:100       its items from the 100th on
 *  r42:offset:100+2048  the longest string of item 100, from character 2048 on
 *  r42:json:100+2048    the JSON of item 100, from character 2048 on
 *  r42:fields+0         the JSON of its fields */
export type Position =
  | { readonly at: "items"; readonly offset: number }
  | TextPosition
  | { readonly at: "fields"; readonly from: number };

/** Inside one item. */
export interface TextPosition {
  readonly at: "text" | "json";
  readonly offset: number;
  readonly from: number;
}

export interface Continuation {
  /** The stored result; absent where the tool itself is to be asked. */
  readonly id?: string;
  readonly position: Position;
}

export function offsetToken(offset: number): string {
  return `offset:${offset}`;
}

export function storedToken(id: string, position: Position): string {
  switch (position.at) {
    case "items":
      return `${id}:offset:${position.offset}`;
    case "text":
      return `${id}:offset:${position.offset}+${position.from}`;
    case "json":
      return `${id}:json:${position.offset}+${position.from}`;
    case "fields":
      return `${id}:fields+${position.from}`;
  }
}

/** Undefined for what is no token of ours. */
export function parseToken(token: string): Continuation | undefined {
  const direct = /^offset:(\d{1,15})$/.exec(token);
  if (direct !== null) return { position: { at: "items", offset: Number(direct[1]) } };
  const stored = /^(r\d{1,15}):(?:(offset|json):(\d{1,15})|fields)(?:\+(\d{1,15}))?$/.exec(token);
  if (stored === null) return undefined;
  const [, id = "", kind, offset, from] = stored;
  return { id, position: positionOf(kind, Number(offset), from === undefined ? undefined : Number(from)) };
}

function positionOf(kind: string | undefined, offset: number, from: number | undefined): Position {
  if (kind === undefined) return { at: "fields", from: from ?? 0 };
  if (kind === "json") return { at: "json", offset, from: from ?? 0 };
  return from === undefined ? { at: "items", offset } : { at: "text", offset, from };
}
