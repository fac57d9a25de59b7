import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore } from "../../core/store/index.ts";

/** How to open a store wherever it is. */
interface OpenStoreOptions {
  /** The path of a SQLite file, or the address of a PostgreSQL database. */
  readonly place: string;
  readonly waitMs?: number | undefined;
  readonly now?: (() => number) | undefined;
}

/** Opens the store at a place. Loads the driver that it needs. */
export async function openStore({ place, ...options }: OpenStoreOptions): Promise<MaintainedStore> {
  if (isStoreAddress(place)) {
    const { openMaintainedPostgres } = await import("./postgres.ts");
    return openMaintainedPostgres({ url: place, ...options });
  }
  const { openMaintainedSqlite } = await import("./sqlite.ts");
  return openMaintainedSqlite({ path: place, ...options });
}

/** Whether a place is the address of a database and not a file. Throws for an address that no driver understands. */
export function isStoreAddress(place: string): boolean {
  if (/^postgres(ql)?:\/\//.test(place)) return true;
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(place) ?? [];
  if (scheme === undefined) return false;
  throw new ContextError("invalid_config", `no store has addresses with ${scheme}://`, {
    hint: "Name a file, or postgres://USER@HOST/DATABASE.",
  });
}
