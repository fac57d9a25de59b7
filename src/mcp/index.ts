export { forgetServer, runningSessions } from "./open-session.ts";
export type { ServedPlace } from "./serve/create-host.ts";
export { serveHttp } from "./serve/serve-http.ts";
export { serveStdio } from "./serve/serve-stdio.ts";
export { chooseRoot } from "./serve/served-roots.ts";
export { sessionIdOf } from "./session-id.ts";
export { wrapServer } from "./wrap/wrap-server.ts";
