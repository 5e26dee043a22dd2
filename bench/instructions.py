"""How many instructions of its own a target executes for a call, counted by callgrind.

Two runs of one target, a short one and a long one: what both have (the start, the sessions, the end) falls out of the
difference. It is the same from run to run within some hundredths, on a busy machine as well; what the kernel does is not
in it. Leave callgrind's files with --keep-tmp: `callgrind_annotate FILE` says where they were executed."""
import glob
import os
import re

VALGRIND = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--trace-children-skip=*echo-server*,*/sh,*/taskset",
            "--quiet", "--callgrind-out-file={tmp}/callgrind.%p"]
# The gateway of root takes another user, who could not write what callgrind leaves.
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
SHORT_S, LONG_S = 0.5, 3.0


def executed(folder):
    """Of all processes that left a file."""
    total = 0
    for path in glob.glob(os.path.join(folder, "callgrind.*")):
        with open(path, errors="replace") as f:
            found = re.findall(r"^(?:summary|totals): (\d+)", f.read(), re.M)
        total += int(found[-1]) if found else 0
    return total


def run(make_target, load, mode, args, seconds):
    """make_target: a Target that is not started. Returns the report of load, with what was executed in all."""
    target = make_target()
    target.cmd = [a.replace("{tmp}", target.tmp) for a in VALGRIND] + target.cmd
    if os.geteuid() == 0:
        os.chown(target.tmp, NOBODY, NOBODY)
        target.cmd = AS_NOBODY + target.cmd
    keeps, target.opts.keep_tmp = target.opts.keep_tmp, True
    try:
        target.start(mode, 60)
        report = load(target, [*args, "--duration", str(seconds), "--warmup", "0", "--timeout", "60", "--setup-timeout", "60"])
        target.stop(30)
        report["executed"] = executed(target.tmp)
    finally:
        target.opts.keep_tmp = keeps
        target.stop()
        target.remove_tmp()
    return report


def measure(make_target, load, mode, args):
    try:
        short, long = (run(make_target, load, mode, args, s) for s in (SHORT_S, LONG_S))
    except (RuntimeError, OSError) as e:
        return {"failed": str(e)}
    if "failed" in long or "failed" in short:
        return long if "failed" in long else short
    calls = long["calls_ok"] - short["calls_ok"]
    if calls < 100 or not short["executed"]:
        return {"failed": f"{calls} calls are too few, or callgrind left no counts"}
    return {"instructions": (long["executed"] - short["executed"]) / calls, "requests": calls,
            "errors": short["errors"] + long["errors"]}
