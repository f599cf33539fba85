#!/usr/bin/env python3
"""CPU per request of the gateway and of nginx, side by side.

The server under test runs alone on core 0; wrk -t1 -c64 and the backend (nginx, 100 bytes) on core 1. Rounds are
interleaved, so that a change of the machine hits both. What counts is the server's CPU time per request (from
schedstat), which doesn't depend on how fast the client is, and the ratio of medians.

    benches/gateway.py [ROUNDS [SECONDS]]

TOPE_BIN=target/release/tope measures `tope gateway FILE` with a policy written here; without it the example
`bare_gateway` (BARE_BIN, or target/release/examples/bare_gateway) is measured: the same data plane without a limiter.
BENCH_MAX=1.2 makes it exit with 1 when a ratio is above that. Needs nginx and wrk.
"""
import os, pathlib, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
POLICY = """listen: 127.0.0.1:{port}
upstream: http://127.0.0.1:{backend}
admin: {{ listen: 127.0.0.1:{admin} }}
limits:
  deny: {{ match: /deny, by: ip, rate: 1/d }}
  api: {{ by: ip, rate: 100M/s }}
"""
BACKEND = """daemon off; worker_processes 1; pid {dir}/backend.pid; error_log {dir}/backend.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; {temp}
  server {{ listen 127.0.0.1:{backend} reuseport; location / {{ default_type text/plain; return 200 "{body}"; }} }} }}
"""
PEER = """daemon off; worker_processes 1; pid {dir}/peer.pid; error_log {dir}/peer.log crit;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; {temp}
  limit_req_zone $binary_remote_addr zone=deny:10m rate=1r/m;
  limit_req_zone $binary_remote_addr zone=api:10m rate=100000000r/s;
  limit_req_status 429;
  upstream api {{ server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port};
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    location = /deny {{ limit_req zone=deny; proxy_pass http://api; }}
    location / {{ limit_req zone=api burst=1000000 nodelay; proxy_pass http://api; }} }} }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def family(pid):
    """A process and its descendants."""
    out, todo = [], [pid]
    while todo:
        pid = todo.pop()
        out.append(pid)
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            todo += [int(child) for child in (task / "children").read_text().split()]
    return out


def cpu_ns(pid):
    tasks = (task for one in family(pid) for task in pathlib.Path(f"/proc/{one}/task").iterdir())
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def rss_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Running:
    def __init__(self, core, command, port, log):
        self.port = port
        self.process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=log, stderr=log)
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"{command[0]} did not start: see {log.name}")
                time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def status(port, path):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def measure(server, path, expected, seconds):
    got = [status(server.port, path) for _ in range(3)][-1]
    if got != expected:
        sys.exit(f"{path} on port {server.port} answers {got}, not {expected}")
    before = cpu_ns(server.process.pid)
    url = f"http://127.0.0.1:{server.port}{path}"
    wrk = ["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", url]
    text = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    spent = cpu_ns(server.process.pid) - before
    requests = int(re.search(r"(\d+) requests in", text)[1])
    if "Socket errors" in text:
        print(text, file=sys.stderr)
    return spent / requests / 1000, requests / seconds, re.search(r"99%\s+(\S+)", text)[1]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not (nginx and shutil.which("wrk")):
        sys.exit("needs nginx and wrk (Debian: apt-get install nginx wrk)")
    folder = tempfile.mkdtemp(prefix="tope-bench-")
    backend, peer, own = free_port(), free_port(), free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    words = {"dir": folder, "backend": backend, "body": "x" * 100, "admin": free_port(),
             "temp": " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)}
    for name, text, port in (("backend", BACKEND, backend), ("peer", PEER, peer), ("policy", POLICY, own)):
        pathlib.Path(folder, name).write_text(text.format(port=port, **words))
    tope = os.environ.get("TOPE_BIN")
    bare = os.environ.get("BARE_BIN", f"{ROOT}/target/release/examples/bare_gateway")
    ours = [tope, "gateway", f"{folder}/policy"] if tope else [
        bare, f"127.0.0.1:{own}", f"http://127.0.0.1:{backend}", "1"]
    running = []
    with open(f"{folder}/log", "w") as log:
        try:
            running.append(Running(1, [nginx, "-c", f"{folder}/backend"], backend, log))
            servers = {"nginx": Running(0, [nginx, "-c", f"{folder}/peer"], peer, log)}
            running.append(servers["nginx"])
            servers["tope"] = Running(0, ours, own, log)
            running.append(servers["tope"])
            results = {}
            for _ in range(rounds):
                for path, expected in (("/deny", 429), ("/", 200)):
                    for name, server in servers.items():
                        results.setdefault((path, name), []).append(measure(server, path, expected, seconds))
            worst = 0
            print(f"{'':10}{'nginx CPU us':>13}{'tope CPU us':>13}{'ratio':>7}   {'nginx req/s':>11}{'tope req/s':>11}"
                  f"   nginx p99 / tope p99")
            for path, what in (("/deny", "refused"), ("/", "proxied")):
                (nc, nr, np), (tc, tr, tp) = (
                    (*(statistics.median(one[i] for one in results[path, name]) for i in (0, 1)), results[path, name][-1][2])
                    for name in ("nginx", "tope"))
                worst = max(worst, tc / nc)
                print(f"{what:10}{nc:13.2f}{tc:13.2f}{tc / nc:7.2f}   {nr:11.0f}{tr:11.0f}   {np} / {tp}")
            print(f"RSS of tope {rss_mib(servers['tope'].process.pid):.1f} MiB")
        finally:
            for one in reversed(running):
                one.stop()
    shutil.rmtree(folder)
    if worst > float(os.environ.get("BENCH_MAX", "inf")):
        sys.exit(f"ratio {worst:.2f} is above {os.environ['BENCH_MAX']}")


main()
