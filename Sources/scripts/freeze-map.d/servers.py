"""Databases, brokers and other servers of the freeze map (programs.py)."""

import glob
import os
import pwd

import talks
from programs import Start, echo, echo_line, free_port, is_root, program
from talks import is_large, text


@program("redis-server", "redis-server", "/usr/bin/redis-server")
def redis(site):
    port = free_port()

    def encode(number):
        key, value = b"key%d" % (number % 100), text(number, 1 << 20 if is_large(number) else 100)
        words = [b"SET", key, value, b"GET", key]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        request = b"*3\r\n" + b"".join(parts[:3]) + b"*2\r\n" + b"".join(parts[3:])
        return request, b"+OK\r\n" + parts[2]

    command = ["/usr/bin/redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", site.folder]
    return Start(command, talks.StreamTalk(port, encode))


@program("memcached", "memcached", "/usr/bin/memcached")
def memcached(site):
    port = free_port()

    def encode(number):
        key, value = b"key%d" % (number % 20), text(number, 500_000 if is_large(number) else 100)
        head = b"%s 0 %d\r\n%s\r\n"
        request = b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key)
        return request, b"STORED\r\nVALUE " + head % (key, len(value), value) + b"END\r\n"

    user = ["-u", "daemon"] if is_root() else []
    return Start(["/usr/bin/memcached", "-l", "127.0.0.1", "-p", str(port)] + user, talks.StreamTalk(port, encode))


def postgres_folder():
    return (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or ["/usr/lib/postgresql/bin"])[-1]


@program("postgres", "postgresql", postgres_folder() + "/postgres", postgres_folder() + "/initdb")
def postgres(site):
    port = free_port()
    user = ["/usr/sbin/runuser", "-u", "postgres", "--"] if is_root() else []
    data = f"{site.folder}/data"
    if is_root():
        account = pwd.getpwnam("postgres")
        os.makedirs(data)
        os.chown(data, account.pw_uid, account.pw_gid)
        os.chown(site.folder, account.pw_uid, account.pw_gid)
    site.run(*user, postgres_folder() + "/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    command = [postgres_folder() + "/postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
               "-c", "unix_socket_directories="]
    return Start(command, talks.PostgresTalk(port), user="postgres" if is_root() else None)


@program("mosquitto", "mosquitto", "/usr/sbin/mosquitto")
def mosquitto(site):
    return mosquitto_at(site, free_port())


def mosquitto_at(site, port):
    path = site.write("mosquitto.conf", f"""
listener {port} 127.0.0.1
allow_anonymous true
persistence false
user {pwd.getpwuid(os.geteuid()).pw_name}
""")
    return Start(["/usr/sbin/mosquitto", "-c", path], talks.MQTTTalk(port))


@program("dnsmasq", "dnsmasq-base", "/usr/sbin/dnsmasq")
def dnsmasq(site):
    port = free_port()
    user = ["--user=root"] if is_root() else []
    command = ["/usr/sbin/dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
               f"--port={port}", "--listen-address=127.0.0.1", "--bind-interfaces", "--address=/freeze.test/192.0.2.7",
               f"--pid-file={site.folder}/pid"] + user
    return Start(command, talks.DNSTalk(port))


@program("unbound", "unbound", "/usr/sbin/unbound")
def unbound(site):
    port = free_port()
    path = site.write("unbound.conf", f"""
server:
    interface: 127.0.0.1
    port: {port}
    username: ""
    chroot: ""
    directory: "{site.folder}"
    pidfile: "{site.folder}/pid"
    use-syslog: no
    module-config: "iterator"
    local-zone: "freeze.test." static
    local-data: "freeze.test. 300 A 192.0.2.7"
remote-control:
    control-enable: no
""")
    return Start(["/usr/sbin/unbound", "-d", "-c", path], talks.DNSTalk(port))


@program("sshd", "openssh-server", "/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen")
def sshd(site):
    port = free_port()
    for name in ("host", "key"):
        site.run("/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{site.folder}/{name}")
    if is_root():
        # sshd refuses to start without it.
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    path = site.write("sshd_config", f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {site.folder}/host
AuthorizedKeysFile {site.folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
""")
    user = pwd.getpwuid(os.geteuid()).pw_name
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    client = ["/usr/bin/ssh", "-F", "none", "-T", "-i", f"{site.folder}/key", "-p", str(port)]
    client += [word for option in options for word in ("-o", option)] + [f"{user}@127.0.0.1", "cat"]
    return Start(["/usr/sbin/sshd", "-D", "-e", "-f", path], talks.SSHTalk(port, client, echo_line))


@program("vsftpd", "vsftpd", "/usr/sbin/vsftpd")
def vsftpd(site):
    port = free_port()
    os.makedirs(f"{site.folder}/empty")
    path = site.write("vsftpd.conf", f"""listen=YES
listen_ipv6=NO
background=NO
listen_address=127.0.0.1
listen_port={port}
anonymous_enable=YES
local_enable=NO
anon_root={site.folder}/site
secure_chroot_dir={site.folder}/empty
{"" if is_root() else "run_as_launching_user=YES"}
""")

    def encode(_):
        return b"NOOP\r\n", b"200 NOOP ok.\r\n"

    return Start(["/usr/sbin/vsftpd", path], talks.StreamTalk(port, encode, talks.log_in))


@program("socat", "socat", "/usr/bin/socat")
def socat(site):
    port = free_port()
    return Start(["/usr/bin/socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork", "PIPE"],
                 talks.StreamTalk(port, echo))


@program("stunnel and cat", "stunnel4", "/usr/bin/stunnel4", "/usr/bin/openssl")
def stunnel(site):
    port = free_port()
    site.run("/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
             "-days", "30", "-keyout", f"{site.folder}/key.pem", "-out", f"{site.folder}/cert.pem")
    path = site.write("stunnel.conf", f"""
foreground = yes
pid =
syslog = no
[echo]
accept = 127.0.0.1:{port}
cert = {site.folder}/cert.pem
key = {site.folder}/key.pem
exec = /bin/cat
""")

    def encode(number):
        line = text(number, 16_000 if is_large(number) else 100)
        return line, line

    return Start(["/usr/bin/stunnel4", path], talks.TLSTalk(port, encode))
