export { type ServedPlace, serverToolNames } from "./create-host.ts";
export { type Conversation, createSessionId, findConversation, forgetServer, runningSessions } from "./open-session.ts";
export { listServers } from "./running-servers.ts";
export { serveHttp } from "./serve-http.ts";
export { serveStdio } from "./serve-stdio.ts";
export { chooseRoot } from "./served-roots.ts";
export { wrapServer } from "./wrap-server.ts";
