# A page on this machine at a fixed port. Waits for the port if another run has it, and ends by itself.
cat >~/server.mjs <<'END'
import { createServer } from "node:http";
const page = "<nav>Home</nav><main><h3>1.4</h3><ul><li>faster start</li><li>fewer files</li></ul></main>";
const server = createServer((_, response) => {
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.end(page);
});
const listen = () => server.listen(49517, "127.0.0.1", () => console.log("ready"));
server.on("error", () => setTimeout(listen, 100));
listen();
setTimeout(() => process.exit(), 60_000);
END
node ~/server.mjs >~/server.log 2>&1 &
while ! grep -q ready ~/server.log; do sleep 0.1; done
