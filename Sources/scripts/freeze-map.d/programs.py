"""The programs of the freeze map: how each one is started, unmodified, and how requests reach it. The web servers; the other
programs are in servers.py and tools.py.

Each function gets a Site and returns a Start. What a program needs is named in the decorator: its Debian package and the files
that must exist.
"""

import os
import re
import shlex
import socket
import subprocess
import time

import talks
from talks import is_large, text

PYTHON = "/usr/bin/python3"
programs = []
ports = iter(range(20000, 32000))


class Start:
    """command: what the app executes. talk: how requests reach it. listens: it has a TCP or Unix stream socket that listens.
    user: User= of the app. is_stdio: its standard input and output are the FIFOs in and out of its folder. before: workers that
    run before it in the idle hour (idle.py), as (name, package, Start)."""

    def __init__(self, command, talk, listens=True, user=None, is_stdio=False, before=()):
        self.command, self.talk, self.listens, self.user = command, talk, listens, user
        self.is_stdio, self.before = is_stdio, before


class Site:
    """The folder of a program, with pages of a web server and helpers that are not frozen."""

    def __init__(self, folder):
        self.folder = folder
        self.helpers = []
        os.makedirs(f"{folder}/site")
        self.pages = []
        for name, size in (("page.txt", 2000), ("large.txt", 1 << 20)):
            self.write(f"site/{name}", text(name, size))
            self.pages.append((f"/{name}", text(name, size)))

    def write(self, name, contents):
        path = f"{self.folder}/{name}"
        with open(path, "wb") as file:
            file.write(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def web(self, port):
        return talks.WebTalk(port, list(self.pages))

    def run(self, *command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder)

    def help(self, *command, output=None):
        log = open(f"{self.folder}/helper.log", "ab")
        self.helpers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output or log, stderr=log))
        return self.helpers[-1]

    def await_success(self, *command):
        """Repeats a command until a helper serves it."""
        deadline = time.monotonic() + talks.TIMEOUT
        while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=talks.TIMEOUT).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{command[0]} has failed for {talks.TIMEOUT}s")
            time.sleep(0.1)


def program(name, package, *files):
    def add(function):
        programs.append((name, package, files, function))
        return function
    return add


def free_port():
    """A port of 127.0.0.1 below the range from which the kernel takes ports of clients."""
    for port in ports:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("there is no free port")


def version(package):
    """The upstream version of an installed Debian package; empty: not installed."""
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Status} ${Version}", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True)
    words = done.stdout.split()
    if len(words) != 4 or words[2] != "installed":
        return ""
    return upstream(words[3])


def upstream(debian):
    """Without the epoch, the revision, and what a package that only depends on others appends."""
    return re.sub(r"^[0-9]+:|-[^-]*$|\+.*$", "", debian)


def missing(package, files):
    """Why a program cannot run; empty: it can."""
    missing = [path for path in files if not os.path.exists(path)]
    if version(package) and not missing:
        return ""
    return f"the package {package} is not installed" + (f" ({missing[0]})" if missing else "")


def is_root():
    return os.geteuid() == 0


def echo(number):
    line = text(number, 1 << 20 if is_large(number) else 100)
    return line, line


def echo_line(number):
    line = text(number, 60_000 if is_large(number) else 100) + b"\n"
    return line, line


def script(start, folder):
    """The script that the app executes: its output goes to FIFOs or to the file `log`."""
    streams = "<in >out 2>>log" if start.is_stdio else "</dev/null >>log 2>&1"
    quoted = shlex.quote(folder)
    return f"cd {quoted} || exit 1\nexport HOME={quoted}\nexec {shlex.join(start.command)} {streams}\n"


# ---- Web servers


@program("nginx", "nginx-light", "/usr/sbin/nginx")
def nginx(site):
    port = free_port()
    temporary = "".join(
        f"{name}_temp_path {site.folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path = site.write("nginx.conf", f"""
        daemon off; worker_processes 2; pid {site.folder}/pid; error_log stderr;
        {"user www-data;" if is_root() else ""}
        events {{}}
        http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {site.folder}/site; }} }}
        """)
    return Start(["/usr/sbin/nginx", "-c", path, "-e", "stderr"], site.web(port))


@program("apache2", "apache2-bin", "/usr/sbin/apache2")
def apache2(site):
    port = free_port()
    path = site.write("apache2.conf", f"""
ServerRoot {site.folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {site.folder}/pid
DefaultRuntimeDir {site.folder}
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
{"User www-data" if is_root() else ""}
{"Group www-data" if is_root() else ""}
DocumentRoot {site.folder}/site
""")
    return Start(["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", path], site.web(port))


@program("lighttpd", "lighttpd", "/usr/sbin/lighttpd")
def lighttpd(site):
    port = free_port()
    path = site.write("lighttpd.conf", f"""
server.document-root = "{site.folder}/site"
server.bind = "127.0.0.1"
server.port = {port}
""")
    return Start(["/usr/sbin/lighttpd", "-D", "-f", path], site.web(port))


@program("haproxy", "haproxy", "/usr/sbin/haproxy")
def haproxy(site):
    port = free_port()
    path = site.write("haproxy.cfg", f"""
defaults
    mode http
    timeout client 5m
    timeout http-keep-alive 5m
frontend web
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain file {site.folder}/site/page.txt
""")
    return Start(["/usr/sbin/haproxy", "-db", "-f", path], talks.WebTalk(port, site.pages[:1]))


@program("python3 -m http.server", "python3", PYTHON)
def http_server(site):
    port = free_port()
    command = [PYTHON, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", f"{site.folder}/site"]
    return Start(command, site.web(port))


@program("gunicorn", "gunicorn", "/usr/bin/gunicorn")
def gunicorn(site):
    port = free_port()
    site.write("app.py", f"""
def app(environ, start_response):
    body = open("{site.folder}/site" + environ["PATH_INFO"], "rb").read()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
""")
    return Start(["/usr/bin/gunicorn", "-b", f"127.0.0.1:{port}", "-w", "2", "app:app"], site.web(port))


@program("uvicorn", "uvicorn", "/usr/bin/uvicorn")
def uvicorn(site):
    port = free_port()
    site.write("app.py", f"""
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = open("{site.folder}/site" + scope["path"], "rb").read()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({{"type": "http.response.start", "status": 200, "headers": headers}})
    await send({{"type": "http.response.body", "body": body}})
""")
    return Start(["/usr/bin/uvicorn", "--host", "127.0.0.1", "--port", str(port), "--lifespan", "off", "app:app"],
                 site.web(port))


@program("node", "nodejs", "/usr/bin/node")
def node(site):
    port = free_port()
    path = site.write("server.js", f"""
const files = require("fs");
require("http").createServer((request, response) => {{
    files.readFile("{site.folder}/site" + request.url, (error, body) => {{
        response.writeHead(error ? 404 : 200, {{ "Content-Length": error ? 0 : body.length }});
        response.end(error ? undefined : body);
    }});
}}).listen({port}, "127.0.0.1");
""")
    return Start(["/usr/bin/node", path], site.web(port))


@program("php -S", "php-cli", "/usr/bin/php")
def php(site):
    port = free_port()
    return Start(["/usr/bin/php", "-S", f"127.0.0.1:{port}", "-t", f"{site.folder}/site"], site.web(port))


@program("ruby (WEBrick)", "ruby-webrick", "/usr/bin/ruby")
def webrick(site):
    port = free_port()
    command = ["/usr/bin/ruby", "-run", "-e", "httpd", "--", f"--port={port}", "--bind-address=127.0.0.1",
               f"{site.folder}/site"]
    return Start(command, site.web(port))


@program("busybox httpd", "busybox", "/usr/bin/busybox")
def busybox(site):
    port = free_port()
    return Start(["/usr/bin/busybox", "httpd", "-f", "-p", f"127.0.0.1:{port}", "-h", f"{site.folder}/site"],
                 site.web(port))


@program("java (com.sun.net.httpserver)", "openjdk-17-jdk-headless", "/usr/bin/java", "/usr/bin/javac")
def java(site):
    port = free_port()
    site.write("Web.java", f"""
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;

public class Web {{
    public static void main(String[] arguments) throws Exception {{
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", {port}), 0);
        server.createContext("/", exchange -> {{
            byte[] body = Files.readAllBytes(Path.of("{site.folder}/site" + exchange.getRequestURI().getPath()));
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        }});
        server.start();
    }}
}}
""")
    site.run("/usr/bin/javac", "Web.java")
    return Start(["/usr/bin/java", "-Xmx256m", "-cp", site.folder, "Web"], site.web(port))


@program("jupyter-notebook", "jupyter-notebook", "/usr/bin/jupyter-notebook")
def jupyter(site):
    port = free_port()
    command = ["/usr/bin/jupyter-notebook", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
               "--NotebookApp.token=", "--NotebookApp.password=", f"--notebook-dir={site.folder}/site"]
    return Start(command, talks.WebTalk(port, [("/api", None)]))
