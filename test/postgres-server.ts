/** A PostgreSQL server of the tests' own, in a temporary folder, that listens on a Unix socket only. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface PostgresServer {
  /** The address of a new, empty database. */
  newDatabase(): Promise<string>;
  /** The address of a database for a role, with parameters. */
  address(database: string, role?: string): string;
  /** Runs statements as the superuser and returns the rows as lines. */
  query(sql: string, database?: string): string;
  /** The folder with the server's files. */
  readonly data: string;
  /** Ends every process of the server at once, as a power failure does. */
  kill(): Promise<void>;
  /** Stops the server as an administrator does it. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** Why there is no server here, or undefined. Tests that need one are skipped, and say this. */
export const noPostgres: string | undefined =
  findPrograms() === undefined ? "PostgreSQL is not installed (Debian: apt-get install postgresql)" : undefined;

if (noPostgres !== undefined) console.log(`Tests with PostgreSQL are skipped: ${noPostgres}.`);

/** `durable` makes it write to the disk as a real server does. */
export async function startPostgres({ durable = false }: { readonly durable?: boolean } = {}): Promise<PostgresServer> {
  const programs = findPrograms()!;
  const user = ownerOfServer();
  const root = mkdtempSync(join(tmpdir(), "plimsoll-pg-"));
  if (user !== undefined) chownSync(root, user.uid, user.gid);
  const data = join(root, "data");
  const run = (program: string, args: readonly string[]): string =>
    execFileSync(join(programs, program), args, {
      ...{ ...user, cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    });
  run("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--no-instructions"]);
  const hba = join(data, "pg_hba.conf");
  writeFileSync(hba, `local all guarded scram-sha-256\n${readFileSync(hba, "utf8")}`);
  const settings = ["listen_addresses = ''", `unix_socket_directories = '${root}'`, "max_connections = 60"];
  const quick = ["fsync = off", "synchronous_commit = on", "full_page_writes = off", "shared_buffers = 32MB"];
  appendFileSync(join(data, "postgresql.conf"), [...settings, ...(durable ? [] : quick), ""].join("\n"));

  let server: ChildProcess | undefined;
  let databases = 0;
  const query = (sql: string, database = "postgres"): string =>
    run("psql", ["-h", root, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-qAtc", sql]).trim();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const closed = once(server, "exit");
    server.kill(signal);
    await closed;
  };
  const address = (database: string, role = "postgres"): string => `postgres://${role}@/${database}?host=${root}`;
  const self: PostgresServer = {
    ...{ data, query, address },
    async newDatabase() {
      databases += 1;
      query(`CREATE DATABASE d${databases} TEMPLATE template0`);
      return address(`d${databases}`);
    },
    async kill() {
      // Stopped first, so that it starts no process meanwhile.
      server!.kill("SIGSTOP");
      const children = childrenOf(server!.pid!);
      for (const pid of children) killQuietly(pid);
      await end("SIGKILL");
      await waitUntil(() => children.every((pid) => !existsSync(`/proc/${pid}`)));
    },
    stop: () => end("SIGINT"),
    async start() {
      server = spawn(join(programs, "postgres"), ["-D", data], { ...user, cwd: root, stdio: "ignore" });
      await waitUntil(() => isReady(() => run("pg_isready", ["-h", root])));
    },
    async remove() {
      await end("SIGINT");
      rmSync(root, { recursive: true, force: true });
    },
  };
  await self.start();
  return self;
}

function findPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((left, right) => Number(right) - Number(left)) : [];
  const folders = versions.map((version) => join(root, version, "bin"));
  return folders.find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")));
}

/** initdb refuses to run as root. */
function ownerOfServer(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [uid = 0, gid = 0] = ["-u", "-g"].map((flag) =>
    Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" })),
  );
  return { uid, gid };
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

function isReady(ask: () => unknown): boolean {
  try {
    ask();
    return true;
  } catch {
    return false;
  }
}

async function waitUntil(holds: () => boolean): Promise<void> {
  for (let round = 0; round < 600; round += 1) {
    if (holds()) return;
    await sleep(50);
  }
  throw new Error("the server did not follow within 30 s");
}
