# SPDX-License-Identifier: Apache-2.0
"""
Clean Debian roots, made by debootstrap from the mirror of this machine's apt, with namespaces around what runs in them: a
command, or a whole system under systemd. The base of each suite, and packages that were fetched, are kept for the next time.
"""
import os
import shutil
import subprocess

from support import demand, until

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOOT_S = 60
# A root has nothing of the machine but its kernel. Where it is booted, the network is its own, too.
ENTER = """
set -e
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
mount --bind "$1" "$0/var/cache/apt/archives"
root=$0
shift
exec env -i %s HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" sh -ec "$@"
""" % PATH
BOOT = """
set -e
mount --make-rprivate /
mount --rbind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
    touch dev/$name
    mount --bind /dev/$name dev/$name
done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 tmpfs run
ip link set lo up
mkdir run/outside
pivot_root . run/outside
umount -l /run/outside
rmdir /run/outside
mount --make-rshared /  # as systemd does itself where it is not in a container: credentials reach a unit by that
exec env -i container=packages %s /lib/systemd/systemd
""" % PATH
SUDO = '#!/bin/sh\nexec "$@"\n'  # a root has one user
# Nobody is there to answer; and what a daemon would do in a root that is not booted, the test does.
APT = 'APT::Get::Assume-Yes "true"; APT::Install-Recommends "false"; Dpkg::Use-Pty "false"; APT::Sandbox::User "root"; Quiet "1";\n'
NO_DAEMONS = "#!/bin/sh\nexit 101\n"


def mirrors():
    """Where this machine gets the packages of Debian, and their security updates."""
    found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages", "Origin: Debian"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    urls = [line.split()[0].rstrip("/") for line in found if line.endswith(" main")]
    plain, security = [u for u in urls if "security" not in u], [u for u in urls if "security" in u]
    demand(plain and security, "apt of this machine has no mirror of Debian, or of its security updates: apt-get update")
    return plain[0], security[0]


def run(command, timeout, cwd=None):
    """What it prints; that it fails is an error with the end of that."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          timeout=timeout, check=False, cwd=cwd)
    demand(done.returncode == 0, "status %d of" % done.returncode, " ".join(command[-2:])[:300], "\n" + done.stdout[-4000:])
    return done.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


class Root:
    """A copy of the base of its suite, in which commands run. Everything in it is removed with it."""

    def __init__(self, folder, suite, name):
        self.folder, self.suite = folder, suite
        self.path = os.path.join(folder, "%s-%s" % (suite, name))
        self.archives = os.path.join(folder, suite + "-archives")
        self.init = None  # process 1, as the machine sees it
        self.outside = None  # the unshare that waits for it
        self.remove()
        run(["cp", "-a", self.base(), self.path], 600)
        write(self.path + "/etc/apt/apt.conf.d/90tests", APT)
        write(self.path + "/etc/apt/sources.list", "deb %s %s main\ndeb %s %s-security main\n" % (mirrors()[0], suite, mirrors()[1], suite))
        write(self.path + "/usr/local/bin/sudo", SUDO, 0o755)
        write(self.path + "/usr/sbin/policy-rc.d", NO_DAEMONS, 0o755)
        shutil.copy("/etc/resolv.conf", self.path + "/etc/resolv.conf")
        os.makedirs(self.archives + "/partial", exist_ok=True)
        self.run("apt-get update")

    def base(self):
        path = os.path.join(self.folder, self.suite + "-base")
        if not os.path.exists(path + ".made"):
            shutil.rmtree(path, ignore_errors=True)
            run(["debootstrap", "--variant=minbase", self.suite, path, mirrors()[0]], 1200)
            write(path + ".made", "")
        return path

    def run(self, command, timeout=600):
        """What the lines for sh print, run by root; in the booted system, if it is booted."""
        if self.init is not None:
            return run(["nsenter", "-t", str(self.init), "-a", "env", "-i", PATH, "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                        "sh", "-ec", command], timeout)
        return run(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", ENTER, self.path, self.archives, command], timeout)

    def start(self, command, output):
        """The same, in the background, in a network of its own where `command` is to find every port free."""
        with open(output, "w") as file:
            return subprocess.Popen(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", ENTER, self.path, self.archives, command],
                                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)

    def boot(self):
        os.unlink(self.path + "/usr/sbin/policy-rc.d")
        with open(self.path + ".boot.log", "w") as log:
            self.outside = subprocess.Popen(["unshare", "-mpuinC", "-f", "--kill-child", "sh", "-c", BOOT, self.path],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.init = until(self.is_up, BOOT_S, "the system does not come up:", read(self.path + ".boot.log"))

    def is_up(self):
        demand(self.outside.poll() is None, "the system has ended:", read(self.path + ".boot.log"))
        children = read("/proc/%d/task/%d/children" % (self.outside.pid, self.outside.pid)).split()
        if not children or "systemd" not in read("/proc/%s/comm" % children[0]):
            return None
        done = subprocess.run(["nsenter", "-t", children[0], "-a", "systemctl", "is-system-running"], capture_output=True, text=True, check=False)
        return int(children[0]) if done.stdout.strip() in ("running", "degraded") else None

    def halt(self):
        if self.outside is not None:
            self.outside.kill()  # and with it, process 1
            self.outside.wait()
            self.outside = self.init = None

    def remove(self):
        self.halt()
        shutil.rmtree(self.path, ignore_errors=True)

    def files(self):
        """The paths of everything on its disk."""
        return set(run(["find", self.path, "-xdev", "-printf", "/%P\n"], 60).splitlines())


def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""
