"""Programs of the idle hour (idle.py) that answer requests: language servers, MCP servers, Jupyter with a kernel and a tab, proxies
with a worker behind them, and more web and DNS servers."""

import http.client
import json
import os
import time
import uuid

import talks
from idle import entry, keep
from idle_streams import Frames, take
from programs import PYTHON, Start, free_port

# ---- Language servers


class LSP:
    """A session of the Language Server Protocol over a socket, or over the two FIFOs of a folder. The outline of one document is
    asked for again and again."""

    def __init__(self, talk, write, read):
        self.talk, self.write, self.read, self.buffer = talk, write, read, b""
        self.send("initialize", 0, processId=None, rootUri=None, capabilities={})
        self.answer(0)
        self.send("initialized")
        document = {"uri": "file:///idle" + talk.suffix, "languageId": talk.language, "version": 1, "text": talk.text}
        self.send("textDocument/didOpen", textDocument=document)

    def send(self, method, identity=None, **parameters):
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if identity is not None:
            message["id"] = identity
        body = json.dumps(message).encode()
        # What arrives meanwhile is kept.
        self.buffer += self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body) or b""

    def answer(self, identity):
        """Other messages of the server are ignored."""
        while True:
            while b"\r\n\r\n" not in self.buffer:
                self.buffer += self.read()
            head, rest = self.buffer.split(b"\r\n\r\n", 1)
            size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            while len(rest) < size:
                rest += self.read()
            message, self.buffer = json.loads(rest[:size]), rest[size:]
            if message.get("id") == identity and "method" not in message:
                if "error" in message:
                    raise ConnectionResetError(str(message["error"]))
                return message.get("result")

    def exchange(self, number):
        self.send("textDocument/documentSymbol", number + 1, textDocument={"uri": "file:///idle" + self.talk.suffix})
        received = json.dumps(self.answer(number + 1)).encode()
        self.talk.learned = self.talk.learned or received
        return self.talk.learned, received

    def close(self):
        pass


class LSPTalk:
    """address: a port; None: the FIFOs of the folder."""

    def __init__(self, folder, language, suffix, text, port=None):
        self.language, self.suffix, self.text, self.port, self.learned = language, suffix, text, port, None
        self.files = None if port else talks.Files(folder)
        self.session = None
        self.open = self.fresh = self.tcp if port else self.pipes

    def tcp(self):
        stream = talks.Stream(self.port, None)

        def read():
            if more := stream.socket.recv(65536):
                return more
            raise ConnectionResetError("end of the stream")

        session = LSP(self, stream.socket.sendall, read)
        session.socket, session.close = stream.socket, stream.close
        return session

    def pipes(self):
        if not self.session:
            source, sink = self.files.ends[1], self.files.ends[0]

            def write(data):
                return talks.transfer(source, sink, data, 0)

            self.session = LSP(self, write, lambda: talks.transfer(source, sink, b"", 1))
        return self.session


PYTHON_TEXT = "import os\n\n\nclass One:\n    def two(self):\n        return os.getpid()\n"
C_TEXT = "struct one { int two; };\nint three(struct one *four) { return four->two; }\n"


@entry("python-lsp-server over TCP", "python3-pylsp", "/usr/bin/pylsp", play=keep)
def pylsp(site):
    port = free_port()
    return Start(["/usr/bin/pylsp", "--tcp", "--host", "127.0.0.1", "--port", str(port)],
                 LSPTalk(site.folder, "python", ".py", PYTHON_TEXT, port))


@entry("python-lsp-server over pipes", "python3-pylsp", "/usr/bin/pylsp", play=keep)
def pylsp_pipes(site):
    return Start(["/usr/bin/pylsp"], LSPTalk(site.folder, "python", ".py", PYTHON_TEXT), listens=False, is_stdio=True)


@entry("clangd over pipes", "clangd", "/usr/bin/clangd", play=keep)
def clangd(site):
    return Start(["/usr/bin/clangd", "--log=error"], LSPTalk(site.folder, "c", ".c", C_TEXT), listens=False, is_stdio=True)


# ---- MCP


MCP = """
import json, os, socketserver, sys

def answer(line):
    request = json.loads(line)
    text = request["params"]["arguments"]["text"].upper()
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\\n"

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(answer(line).encode())

class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

if len(sys.argv) > 1:
    Server(sys.argv[1], Handler).serve_forever()
for line in sys.stdin:
    sys.stdout.write(answer(line))
    sys.stdout.flush()
"""


def tool_call(number):
    word = talks.text(number, 60_000 if talks.is_large(number) else 100).decode()
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "upper", "arguments": {"text": word}}}
    result = {"content": [{"type": "text", "text": word.upper()}]}
    answer = {"jsonrpc": "2.0", "id": number, "result": result}
    return json.dumps(call).encode() + b"\n", json.dumps(answer).encode() + b"\n"


@entry("an MCP server of Python over pipes", "python3", PYTHON, play=keep)
def mcp_pipes(site):
    return Start([PYTHON, site.write("mcp.py", MCP)], talks.StandardTalk(site.folder, tool_call), listens=False,
                 is_stdio=True)


@entry("an MCP server of Python on a Unix socket", "python3", PYTHON, play=keep)
def mcp_socket(site):
    path = f"{site.folder}/socket"
    return Start([PYTHON, site.write("mcp.py", MCP), path], talks.StreamTalk(path, tool_call))


# ---- Jupyter


CELL = """
import time
for number in range({count}):
    due = {start} + number * 8
    time.sleep(max(0, due - time.time()))
    print(number, due, flush=True)
"""


def execute(tab, code):
    """Returns the ID of the request."""
    identity = uuid.uuid4().hex
    head = {"msg_id": identity, "msg_type": "execute_request", "username": "idle", "session": "idle", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False,
               "stop_on_error": True}
    tab.send(json.dumps({"header": head, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
    return identity


def texts(tab, identity):
    """What a cell prints, until it has ended or the time is over. The reply comes over another channel, and may be earlier."""
    while (data := tab.receive()) is not None:
        received = json.loads(data)
        kind, content = received["msg_type"], received["content"]
        if received["parent_header"].get("msg_id") != identity:
            continue
        if kind == "stream":
            yield content["text"]
        elif kind == "error":
            raise ValueError(content)
        elif kind == "status" and content["execution_state"] == "idle":
            return


def notebook(row):
    """A kernel and a tab with it. A cell prints each 8s in the second third of the time; another one is executed at the end."""
    port = row.start.talk.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/kernels", "{}", {"Content-Type": "application/json"})
    answer = connection.getresponse()
    kernel = json.loads(answer.read())
    connection.close()
    row.end -= 2  # The last cell is executed before the end.
    tab = Frames(row, f"/api/kernels/{kernel['id']}/channels")
    row.asked()
    third = (row.end - row.begin) / 3
    start = time.time() + third
    cell = execute(tab, CELL.format(start=start, count=int(third / 8)))
    for text in texts(tab, cell):
        for line in text.splitlines():
            if line.strip():
                take(row, line)
    if row.events != int(third / 8):
        row.lost += 1
        row.problem(f"{row.events} lines of {int(third / 8)}")
    row.received.append("a line each 8s for a third of the time, in a tab")
    while row.left() > 15:
        # Answers the pings of the notebook.
        end, row.end = row.end, row.end - 15
        tab.receive()
        row.end = end
    cell = execute(tab, "print('a' * 1000)")
    row.compare(b"a" * 1000 + b"\n", "".join(texts(tab, cell)).encode())
    tab.socket.close()


@entry("jupyter-notebook with a kernel and a tab", "jupyter-notebook", "/usr/bin/jupyter-notebook",
       "/usr/lib/python3/dist-packages/ipykernel/__init__.py", play=notebook)
def jupyter(site):
    port = free_port()
    command = ["/usr/bin/jupyter-notebook", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
               "--NotebookApp.token=", "--NotebookApp.password=", "--NotebookApp.disable_check_xsrf=True",
               f"--notebook-dir={site.folder}/site"]
    return Start(command, talks.WebTalk(port, []))


# ---- Proxies with a worker behind them


BACKEND = """
import sys, tornado.ioloop, tornado.web

class Page(tornado.web.RequestHandler):
    def get(self):
        self.write("%s %d\\n" % (self.request.path, self.request.connection.context.address[1]))

tornado.web.Application([(".*", Page)]).listen(int(sys.argv[1]), "127.0.0.1")
tornado.ioloop.IOLoop.current().start()
"""


def backend(site):
    port = free_port()
    return port, Start([PYTHON, site.write("backend.py", BACKEND), str(port)], talks.WebTalk(port, []))


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=talks.TIMEOUT)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise ConnectionResetError(f"status {answer.status}")
    return body


def behind(row):
    """The page has the port of the connection to the worker behind: the kept one has to be used again."""
    port = row.start.talk.port
    first = get(port, "/page")
    for one in (row, *row.before):
        one.asked()
    row.rest()
    row.compare(first, get(port, "/page"))
    row.received.append("both pages through one connection to the worker behind")


@entry("nginx with a keepalive of its upstream", "nginx-light", "/usr/sbin/nginx",
       "/usr/lib/python3/dist-packages/tornado/__init__.py", play=behind)
def nginx(site):
    port, (server, start) = free_port(), backend(site)
    temporary = "".join(
        f"{name}_temp_path {site.folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path = site.write("nginx.conf", f"""
        daemon off; worker_processes 1; pid {site.folder}/pid; error_log stderr;
        events {{}}
        http {{
            access_log off; {temporary}
            upstream worker {{ server 127.0.0.1:{server}; keepalive 4; keepalive_timeout 3h; keepalive_time 3h; }}
            server {{
                listen 127.0.0.1:{port};
                location / {{ proxy_pass http://worker; proxy_http_version 1.1; proxy_set_header Connection ""; }}
            }}
        }}
        """)
    return Start(["/usr/sbin/nginx", "-c", path, "-e", "stderr"], talks.WebTalk(port, []),
                 before=[("behind it, tornado", "python3-tornado", start)])


def checked(row):
    """The health checks wake the worker behind; a page at the beginning and at the end."""
    port = row.start.talk.port
    get(port, "/page")
    for one in (row, *row.before):
        one.asked()
    row.rest()
    row.compare(b"/page", get(port, "/page").split()[0])


@entry("haproxy with check inter 10s", "haproxy", "/usr/sbin/haproxy",
       "/usr/lib/python3/dist-packages/tornado/__init__.py", play=checked)
def haproxy(site):
    port, (server, start) = free_port(), backend(site)
    path = site.write("haproxy.cfg", f"""
defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend web
    bind 127.0.0.1:{port}
    default_backend workers
backend workers
    option httpchk GET /check
    server worker 127.0.0.1:{server} check inter 10s
""")
    return Start(["/usr/sbin/haproxy", "-db", "-f", path], talks.WebTalk(port, []),
                 before=[("behind it, tornado", "python3-tornado", start)])


# ---- Other servers


@entry("Caddy", "caddy", "/usr/bin/caddy", play=keep)
def caddy(site):
    port = free_port()
    path = site.write("Caddyfile", f"""{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    root * {site.folder}/site
    file_server
}}
""")
    return Start(["/usr/bin/caddy", "run", "--adapter", "caddyfile", "--config", path], site.web(port))


# It becomes a daemon, whose first process ends, and with that an app would end.
@entry("aardvark-dns (Rust)", "aardvark-dns", "/usr/lib/podman/aardvark-dns", play=keep)
def aardvark(site):
    port = free_port()
    os.makedirs(f"{site.folder}/dns")
    site.write("dns/freeze", "127.0.0.1\n" + "a" * 64 + " 192.0.2.7  freeze.test\n")
    command = f"/usr/lib/podman/aardvark-dns --config {site.folder}/dns -p {port} run && exec sleep infinity"
    return Start(["/bin/sh", "-c", command], talks.DNSTalk(port), listens=False)
