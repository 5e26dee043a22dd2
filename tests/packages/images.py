# SPDX-License-Identifier: Apache-2.0
"""
The images of Containerfile, made and run as docs/guides/container.md says, by podman and buildah. No registry is asked: what
they begin with is a clean root that has the name of Debian's image. Containers have a network of loopback alone and no cgroup,
and the engine a storage of its own.
"""
import hashlib
import os
import re
import shutil
import subprocess
import zipfile

from blocks import blocks
from roots import Root, read, run, write
from support import check, demand, skip, until

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/guides/container.md"
BASE = "docker.io/library/debian:13-slim"
HARD = "--read-only --cap-drop ALL --security-opt no-new-privileges"
TOKEN = "a-token-0123456789abcdef"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
PODMAN = """#!/bin/sh
# podman with a storage of the test's own, and without what it would need a network or cgroups for.
command=$1
shift
case $command in
build) set -- --pull=never --isolation=chroot "$@" ;;
run)
    for word; do
        shift
        case $word in --publish) skipped=next ;; *) [ -n "$skipped" ] || set -- "$@" "$word"; skipped= ;; esac
    done
    set -- --cgroups=disabled --network=none --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 "$@" ;;
esac
exec %(podman)s --root %(storage)s/root --runroot %(storage)s/run --tmpdir %(storage)s/tmp --storage-driver overlay "$command" "$@"
"""
ALONE = """
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec sleep infinity
"""


# Ready first: what is asked right away may come too early.
READY = "for i in $(seq 200); do ! podman logs mcpgated 2>&1 | grep -q gateway_ready || break; sleep 0.1; done\n"


def uv_stand_in(path):
    """A package of that name with programs of those names, as pip takes it from a file: PyPI, where uv comes from, is not asked."""
    with zipfile.ZipFile(path, "w") as wheel:
        for name in ("uv", "uvx"):
            program = zipfile.ZipInfo("uv-0.data/scripts/" + name)
            program.external_attr = 0o100755 << 16
            wheel.writestr(program, "#!/bin/sh\necho in the place of %s\n" % name)
        wheel.writestr("uv-0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("uv-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: uv\nVersion: 0\n")
        wheel.writestr("uv-0.dist-info/RECORD", "")


class Engine:
    """podman, with its mounts in a namespace of their own."""

    def __init__(self, folder, tarball):
        self.folder = os.path.join(folder, "images")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder + "/tree")
        run(["tar", "-xf", tarball, "-C", self.folder + "/tree", "--strip-components=1"], 60)
        write(self.folder + "/bin/podman", PODMAN % {"podman": shutil.which("podman"), "storage": self.folder + "/storage"}, 0o755)
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-ec", ALONE], stdin=subprocess.DEVNULL)
        until(lambda: read("/proc/%d/comm" % self.holder.pid).strip() == "sleep", 10, "no namespace")

    def run(self, command, where="tree", timeout=3600):
        path = "PATH=%s/bin:%s" % (self.folder, os.environ["PATH"])
        return run(["nsenter", "-t", str(self.holder.pid), "-m", "env", path, "HOME=" + self.folder, "sh", "-ec",
                    "cd %s/%s\n%s" % (self.folder, where, command)], timeout)

    def base(self, folder):
        """Debian, of the name that Containerfile begins with."""
        root = Root(folder, "trixie", "image")
        try:
            os.unlink(root.path + "/usr/local/bin/sudo")
            self.run("tar -C %s --exclude=./var/lib/apt/lists/* -cf - . | podman import - %s" % (root.path, BASE))
        finally:
            root.remove()

    def end(self):
        try:
            self.run("podman rm --all --force --time 1", timeout=120)
        finally:
            self.holder.kill()
            self.holder.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def pid(self, name):
        return int(self.run("podman inspect --format '{{.State.Pid}}' " + name))

    def in_network_of(self, name, command):
        return run(["nsenter", "-t", str(self.pid(name)), "-n", "sh", "-ec", command], 60)


def block(name, kind="example"):
    with open(os.path.join(TOP, PAGE)) as file:
        found = [b for b in blocks(PAGE, file.read()) if b.kind == kind and b.name == name]
    demand(found, "%s has no block of the name %s" % (PAGE, name))
    return found[0].text


def is_confined(engine, name):
    status = dict(line.split(":\t", 1) for line in read("/proc/%d/status" % engine.pid(name)).splitlines() if ":\t" in line)
    demand(set(status["Uid"].split()) == {"10001"}, "its user is", status["Uid"])
    demand(int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0, "it has capabilities", status["CapEff"], status["CapBnd"])
    demand(status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", "it is not confined")
    demand("Read-only" in engine.run("podman exec %s touch /nothing 2>&1 || true" % name), "its root is not read-only")


def daemon_alone(engine, call):
    engine.run("podman run -d --name alone %s mcpgated --listen 0.0.0.0:8808 --plaintext --token-file /run/token -- mcpgated-demo"
               % (HARD + " --volume ./token:/run/token:ro"), "own")
    until(lambda: "ready: " in engine.run("podman logs alone 2>&1"), 20, "it does not get ready:", engine.run("podman logs alone 2>&1"))
    is_confined(engine, "alone")
    said = engine.in_network_of("alone", call % {"url": "http://127.0.0.1:8808/mcp -H 'Authorization: Bearer %s'" % TOKEN})
    demand('"text":"hello"' in said, said)
    size = int(engine.run("podman image inspect --format '{{.Size}}' mcpgated")) - int(engine.run("podman image inspect --format '{{.Size}}' " + BASE))
    demand(size < 40 << 20, "it adds", size, "bytes to", BASE)
    engine.run("podman stop --time 60 alone")
    demand(engine.run("podman inspect --format '{{.State.ExitCode}}' alone").strip() == "0", "its end")


def has_programs(engine):
    for program, said in (("node", "v20"), ("npm", "9."), ("python3", "Python 3"), ("uv", "in the place of uv"), ("uvx", "in the place of uvx")):
        printed = engine.run("podman run --rm --entrypoint %s mcpgated-servers --version" % program)
        demand(said in printed, program, "prints", printed)


def as_the_page_says(engine):
    """A server of npm, in an image of one's own."""
    said = engine.run(block("run it").replace("podman exec", READY + "podman exec"), "own")
    demand("files" in said, "mcpgatectl status says:", said)
    is_confined(engine, "mcpgated")
    listed = engine.run("podman exec mcpgated mcpgatectl call files list_directory '{\"path\": \"/srv/files\"}'")
    demand("hello.txt" in listed, listed)
    until(lambda: "sessions-" in engine.run("podman exec mcpgated find /var/lib/mcpgated -type f"), 20, "there is no state")
    demand(engine.in_network_of("mcpgated", "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8808/files/mcp") == "401", "without a token")
    engine.run("podman stop --time 60 mcpgated")
    demand(engine.run("podman inspect --format '{{.State.ExitCode}}' mcpgated").strip() == "0", "its end")


def judge(folder, tarball, call):
    """call: a command that calls the tool echo at %(url)s."""
    engine = Engine(folder, tarball)
    own = engine.folder + "/own/"
    write(own + "Containerfile", block("an image of your own"))
    write(own + "mcpgated.yaml", re.sub(r"\bHASH\b", hashlib.sha256(TOKEN.encode()).hexdigest(), block("container", "run")))
    write(own + "files/hello.txt", "hello\n")
    write(own + "token", TOKEN + "\n", 0o444)
    # npm trusts whom this machine trusts; it looks into HOME, which is /tmp there.
    write(engine.folder + "/npmrc", "cafile=/tmp/authorities\n")
    build_own = block("build it").replace("podman build", "podman build --volume %s/npmrc:/tmp/.npmrc:ro --volume %s:/tmp/authorities:ro"
                                          % (engine.folder, AUTHORITIES))
    uv_stand_in(engine.folder + "/uv-0-py3-none-any.whl")
    write(engine.folder + "/pip.conf", "[global]\nno-index = true\n")
    builds = block("images").replace("--target servers", "--target servers --build-arg UV=/run/uv-0-py3-none-any.whl"
                                     " --volume %(folder)s/uv-0-py3-none-any.whl:/run/uv-0-py3-none-any.whl:ro"
                                     " --volume %(folder)s/pip.conf:/etc/pip.conf:ro" % {"folder": engine.folder})
    try:
        check("images, what they begin with", lambda: engine.base(folder))
        check("images are built", lambda: engine.run(builds))
        check("images, the programs of servers", lambda: has_programs(engine))
        skip("images, uv itself", "it comes from PyPI, which is not asked; Debian and npm have no package of it. A package of that name stood in")
        check("images, an image of one's own", lambda: engine.run(build_own, "own"))
        check("images, the daemon alone", lambda: daemon_alone(engine, call))
        check("images, with a server", lambda: as_the_page_says(engine))
    finally:
        engine.end()
