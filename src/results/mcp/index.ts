export { type ServedPlace, serverToolNames } from "./create-host.ts";
export { type Conversation, conversationOf, forgetServer, runningSessions, sessionIdOf } from "./open-session.ts";
export { serveHttp } from "./serve-http.ts";
export { serveStdio } from "./serve-stdio.ts";
export { chooseRoot } from "./served-roots.ts";
export { wrapServer } from "./wrap-server.ts";
