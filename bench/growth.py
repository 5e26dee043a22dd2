"""What a call costs the gateway with more and more sessions, on as many connections: it should stay the same.

All numbers of sessions are measured in turn with one and the same target, so that the ratio holds when the machine's
speed drifts."""
import statistics

CONNECTIONS = 64


def measure(target, load, mode, numbers, rounds, extra):
    """Returns a report with `cost_us` by the number of sessions; `growth` is the dearest of many sessions against one
    for each connection, `growth_of_one` the dearest of all against a single one, whose calls go to its child in batches."""
    costs, errors, requests = {n: [] for n in numbers}, 0, 0
    for _ in range(rounds):
        for n in numbers:
            r = load(target, ["--mode", mode, "--connections", str(CONNECTIONS), "--sessions", str(n),
                              "--setup-timeout", "300", *extra], watch=True)
            if not r.get("gw_cpu_us"):
                return {"failed": f"with {n} sessions: " + r.get("failed", "nothing was measured")}
            errors += r["errors"] + r["sessions_failed"]
            requests += r["requests"]
            costs[n].append(r["gw_cpu_us"])
    many = [n for n in numbers if n > CONNECTIONS]
    of_one = [max(costs[n][i] for n in numbers) / costs[numbers[0]][i] for i in range(rounds)]
    of_each = [max(costs[n][i] for n in many) / costs[CONNECTIONS][i] for i in range(rounds)]
    return {"cost_us": {n: statistics.median(c) for n, c in costs.items()}, "requests": requests, "errors": errors,
            "growth": statistics.median(of_each), "growth_of_one": statistics.median(of_one)}


def describe(name, reports):
    """A line for the table, of the last report that has figures."""
    for r in reversed(reports):
        if "cost_us" in r:
            each = ", ".join(f"{n:,}: {c:.1f}" for n, c in r["cost_us"].items())
            return (f"  {name}: us a call by sessions: {each}; the dearest against one session for each connection "
                    f"{r['growth']:.2f}, against a single one {r['growth_of_one']:.2f}")
    return None
