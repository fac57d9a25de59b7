/** A PostgreSQL server of the tests' own, in a temporary folder. It listens on a Unix socket, and with TLS on 127.0.0.1 too. */
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
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface PostgresServer {
  /** The address of a new, empty database. */
  newDatabase(): Promise<string>;
  /** The address of a database for a role, with parameters. */
  address(database: string, role?: string): string;
  /** With TLS: the address of a database for a role at 127.0.0.1 or another name of this machine, and the certificates. */
  readonly tls: TlsPlace | undefined;
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

export interface TlsPlace {
  address(database: string, parameters?: Readonly<Record<string, string>>, host?: string): string;
  /** The certificate that signed those of the server and the client. */
  readonly authority: string;
  /** Another authority, which signed nothing here. */
  readonly stranger: string;
  /** A certificate of the role `certified`, and its key. */
  readonly client: { readonly sslcert: string; readonly sslkey: string };
}

/** Why there is no server here, or undefined. Tests that need one are skipped, and say this. */
export const noPostgres: string | undefined =
  findPrograms() === undefined ? "PostgreSQL is not installed (Debian: apt-get install postgresql)" : undefined;

if (noPostgres !== undefined) console.log(`Tests with PostgreSQL are skipped: ${noPostgres}.`);

interface ServerOptions {
  /** Writes to the disk as a real server does. */
  readonly durable?: boolean;
  /** Listens at 127.0.0.1 too, with a certificate for that address. The role `certified` needs a certificate. */
  readonly tls?: boolean;
}

export async function startPostgres({ durable = false, tls = false }: ServerOptions = {}): Promise<PostgresServer> {
  const programs = findPrograms()!;
  const user = ownerOfServer();
  const root = mkdtempSync(join(tmpdir(), "plimsoll-pg-"));
  if (user !== undefined) chownSync(root, user.uid, user.gid);
  const data = join(root, "data");
  const port = tls ? await freePort() : 5432;
  const run = (program: string, args: readonly string[]): string =>
    execFileSync(program === "openssl" ? program : join(programs, program), args, {
      ...{ ...user, cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
      env: { ...process.env, LC_ALL: "C.UTF-8", PGPORT: String(port) },
    });
  run("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--no-instructions"]);
  const hba = join(data, "pg_hba.conf");
  const roles = "local all guarded scram-sha-256\nhostssl all certified 127.0.0.1/32 cert\n";
  writeFileSync(hba, `${roles}${readFileSync(hba, "utf8")}`);
  const secure = tls ? makeCertificates(root, port, run) : undefined;
  const settings = [
    `port = ${port}`,
    ...(secure?.settings ?? ["listen_addresses = ''"]),
    `unix_socket_directories = '${root}'`,
    "max_connections = 60",
  ];
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
  const address = (database: string, role = "postgres"): string =>
    `postgres://${role}@/${database}?host=${root}${tls ? `&port=${port}` : ""}`;
  const self: PostgresServer = {
    ...{ data, query, address, tls: secure?.place },
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

type Run = (program: string, args: readonly string[]) => string;

/** Makes an authority, a certificate for 127.0.0.1 and one for a client. */
function makeCertificates(
  root: string,
  port: number,
  run: Run,
): { readonly settings: readonly string[]; readonly place: TlsPlace } {
  const file = (name: string) => join(root, name);
  const key = (name: string) => [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-noenc",
    "-keyout",
    file(`${name}.key`),
  ];
  const make = (name: string, subject: string, ...more: string[]) =>
    run("openssl", [
      "req",
      "-x509",
      "-days",
      "2",
      ...key(name),
      "-subj",
      `/CN=${subject}`,
      "-out",
      file(`${name}.pem`),
      ...more,
    ]);
  const signed = [
    "-CA",
    file("authority.pem"),
    "-CAkey",
    file("authority.key"),
    "-addext",
    "basicConstraints=CA:FALSE",
  ];
  make("authority", "authority");
  make("stranger", "stranger");
  make("server", "server", ...signed, "-addext", "subjectAltName=IP:127.0.0.1");
  make("client", "certified", ...signed);
  return {
    settings: [
      ...["listen_addresses = '127.0.0.1'", "ssl = on", `ssl_ca_file = '${file("authority.pem")}'`],
      ...[`ssl_cert_file = '${file("server.pem")}'`, `ssl_key_file = '${file("server.key")}'`],
    ],
    place: {
      address(database, parameters = {}, host = "127.0.0.1") {
        return `postgres://postgres@${host}:${port}/${database}?${new URLSearchParams(parameters)}`;
      },
      authority: file("authority.pem"),
      stranger: file("stranger.pem"),
      client: { sslcert: file("client.pem"), sslkey: file("client.key") },
    },
  };
}

/** Returns a port of this machine that nothing listens at. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
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
