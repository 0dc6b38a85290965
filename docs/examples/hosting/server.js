// server.js: answers each request with its path. It listens on the socket that it is passed (node@.app), or on a port:
// PORT=8080 node server.js
const server = require("http").createServer((request, response) => {
    const body = `You asked for ${request.url}\n`;
    response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(body) });
    response.end(body);
});
server.listen(process.env.LISTEN_PID == process.pid ? { fd: 3 } : Number(process.env.PORT || 8080));
