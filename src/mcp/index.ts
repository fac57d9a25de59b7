export { serveHttp } from "./serve/serve-http.ts";
export { serveStdio } from "./serve/serve-stdio.ts";
export { sessionIdOf } from "./session-id.ts";
export { wrapServer } from "./wrap/wrap-server.ts";
