// SPDX-License-Identifier: Apache-2.0
// Shows the snapshots of /events. Whatever servers and callers have said comes through visible() and ends as text: markup is
// never made of it, and the Content-Security-Policy would not have it (trusted types).
"use strict";

const RATE_MS = 5000;
const HISTORY_MS = 60000;
const SILENT_MS = 4000;
const RETRY_MS = 2000;
const HIDDEN_MS = 10000; // its connections are wanted elsewhere: a browser has six to an address
const LINES_MAX = 400;

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// ---- texts ----

const numbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

// What cannot be seen, or moves or colours what can: controls, directions, joiners, tags, private use, halves of pairs.
const ODD = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]+)/gu;

// That becomes text, too: ^[ and the like for controls, numbers for the rest.
function visible(text) {
	return String(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu, (c) => {
		const code = c.codePointAt(0);
		if (code < 0x20 || code === 0x7f) return "^" + String.fromCodePoint(code ^ 0x40);
		return "\u2039U+" + code.toString(16).toUpperCase().padStart(4, "0") + "\u203a";
	});
}

// For a cell, which is not to be wider than its table.
function short(text) {
	const whole = visible(text);
	return whole.length > 96 ? whole.slice(0, 95) + "…" : whole;
}

function rateText(value) {
	if (value === null) return "–";
	if (value === 0) return "0";
	return value < 9.95 ? value.toFixed(1) : numbers.format(value);
}

function timeText(ms) {
	if (ms === null) return "–";
	if (ms < 1000) return Math.round(ms) + " ms";
	const s = Math.floor(ms / 1000);
	if (s < 100) return s + " s";
	if (s < 6000) return Math.floor(s / 60) + " min";
	if (s < 48 * 3600) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
	return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

function bytesText(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
	return (i === 0 || n >= 99.5 ? Math.round(n) : n.toFixed(1)) + " " + units[i];
}

function boundText(bucket, last) {
	return bucket === last ? "≥ " + limitText(bucket - 1) : "< " + limitText(bucket);
}

function limitText(bucket) {
	const ms = 2 ** bucket;
	return ms < 1000 ? ms + " ms" : Math.round(ms / 1000) + " s";
}

function plural(n, one, many) {
	return numbers.format(n) + " " + (n === 1 ? one : many);
}

// ---- the document ----

function make(name, props, ...children) {
	const node = document.createElement(name);
	for (const [key, value] of Object.entries(props ?? {})) {
		if (key in node && typeof value !== "string") node[key] = value;
		else node.setAttribute(key === "className" ? "class" : key, value);
	}
	node.append(...children);
	return node;
}

// The same as visible(), in a node, where what was odd looks so.
function spell(node, text) {
	text.split(ODD).forEach((part, i) => part && node.append(i % 2 ? make("span", { className: "odd" }, visible(part)) : part));
	return node;
}

function draw(parent, name, attributes) {
	const node = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
	parent.append(node);
	return node;
}

// Nothing is touched that stays as it is: a selection, and what a screen reader says, survive the next snapshot.
function say(node, text) {
	if (node.textContent !== text) node.textContent = text;
}

function mark(node, className) {
	if (node.className !== className) node.className = className;
}

// One node for each item, by key, in their order. Returns those that have gone, which are removed.
function keep(parent, items, keyOf, create, update) {
	const old = parent.kept ?? new Map();
	const kept = new Map();
	let at = parent.firstElementChild;
	for (const item of items) {
		const key = keyOf(item);
		if (kept.has(key)) continue;
		const entry = old.get(key) ?? create(item);
		old.delete(key);
		kept.set(key, entry);
		for (const node of entry.nodes) {
			if (node === at) at = at.nextElementSibling;
			else parent.insertBefore(node, at);
		}
		update(entry, item);
	}
	for (const entry of old.values()) {
		entry.end?.();
		for (const node of entry.nodes) {
			if (node.contains(document.activeElement)) refocus(parent);
			node.remove();
		}
	}
	parent.kept = kept;
}

// What had the focus goes away: the heading of its part gets it, not the top of the page.
function refocus(parent) {
	(parent.closest("details")?.querySelector("summary") ?? parent.closest("section"))?.focus();
}

class Table {
	// columns: [title, className, item => text or {text, className}, or item => a node made once]
	constructor(part, columns, keyOf) {
		this.part = part;
		this.columns = columns;
		this.keyOf = keyOf;
		this.body = part.querySelector("tbody");
		this.body.setAttribute("role", "rowgroup");
		this.body.closest("table").setAttribute("role", "table");
		for (const { title, look, name } of columns)
			part.querySelector("thead tr").append(make("th", { scope: "col", className: look ?? "" },
				title || make("span", { className: "unseen" }, name)));
	}

	show(items) {
		const table = this.body.closest("table");
		table.hidden = items.length === 0;
		if (this.part.querySelector(".none")) this.part.querySelector(".none").hidden = items.length > 0;
		keep(this.body, items, this.keyOf, () => this.row(), (entry, item) => this.fill(entry, item));
	}

	row() {
		const entry = { item: null, cells: [] };
		const row = make("tr", { role: "row" });
		this.columns.forEach((column, i) => {
			// On a narrow screen a row is no row of a table to look at, but still is one.
			const cell = make(i === 0 ? "th" : "td", { className: column.look ?? "", role: i === 0 ? "rowheader" : "cell", "data-title": column.title });
			if (i === 0) cell.scope = "row";
			if (column.made) cell.append(column.made(entry));
			entry.cells.push(cell);
			row.append(cell);
		});
		entry.nodes = [row];
		return entry;
	}

	fill(entry, item) {
		entry.item = item;
		this.columns.forEach((column, i) => {
			if (column.update) column.update(entry, item, entry.cells[i]);
			if (!column.of) return;
			const value = column.of(item);
			say(entry.cells[i], typeof value === "number" ? numbers.format(value) : value);
			mark(entry.cells[i], (column.look ?? "") + (value.length > 28 ? " long" : "") + (value === 0 || value === "0" || value === "–" ? " zero" : ""));
		});
	}
}

// ---- what was before ----

let history = [];

function remember(snapshot) {
	const s = snapshot.status;
	const last = history.at(-1);
	if (last && s.uptime_ms < last.at) history = [];
	else if (last && s.uptime_ms === last.at) history.pop(); // who comes again gets the last one again
	history.push({
		at: s.uptime_ms,
		calls: snapshot.counters.calls,
		flying: s.calls,
		refused: refusedOf(snapshot),
		usage: snapshot.usage,
		counters: snapshot.counters,
		servers: new Map(s.servers.map((server) => [serverKey(server), server])),
	});
	while (history.length > 1 && history[1].at <= s.uptime_ms - HISTORY_MS) history.shift();
}

// The entry of so long ago, or the oldest; null where there is none before the last.
function before(ms) {
	const now = history.at(-1);
	for (let i = history.length - 2; i >= 0; i--)
		if (now.at - history[i].at >= ms - 200 || i === 0) return history[i];
	return null;
}

// How much a number has grown in a second. null: it is not known yet.
function rate(of) {
	const then = before(RATE_MS);
	const now = history.at(-1);
	const from = then && of(then), to = of(now);
	if (!then || from === undefined || to === undefined) return null;
	return Math.max(0, (to - from) * 1000 / (now.at - then.at));
}

// The same at each moment, for a line.
function rates(of) {
	const list = [];
	for (let i = 1; i < history.length; i++) {
		const from = of(history[Math.max(0, i - 2)]), to = of(history[i]);
		const ms = history[i].at - history[Math.max(0, i - 2)].at;
		list.push(from === undefined || to === undefined ? 0 : Math.max(0, (to - from) * 1000 / ms));
	}
	return list;
}

// The 401 that an ordinary sign-in begins with is none: nobody has presented anything yet.
const isSignIn = (refusal) => refusal.reason === "no_token";

function refusalsOf(server) {
	return server.refused.filter((r) => !isSignIn(r));
}

function signInsOf(server) {
	return server.refused.find(isSignIn)?.count ?? 0;
}

function refusedOf(snapshot) {
	return doorRows(snapshot.counters).concat(...snapshot.status.servers.map(refusalsOf)).reduce((sum, r) => sum + r.count, 0);
}

// A retired server has the name of the one in its place.
function serverKey(server) {
	return server.name + (server.state === "retiring" ? "/" + server.path + "/retiring" : "");
}

// What has come into the buckets within the last minute; null: nothing that this page has seen.
function lately(server) {
	const then = before(HISTORY_MS)?.servers.get(serverKey(server));
	if (!then) return null;
	const buckets = server.answer_buckets.map((n, i) => n - then.answer_buckets[i]);
	return buckets.some((n) => n > 0) && buckets.every((n) => n >= 0) ? buckets : null;
}

function quantile(buckets, part) {
	const count = buckets.reduce((sum, n) => sum + n, 0);
	let seen = 0;
	if (count === 0) return "–";
	for (let i = 0; i < buckets.length; i++) {
		seen += buckets[i];
		if (seen >= count * part) return boundText(i, buckets.length - 1);
	}
	return "–";
}

function traceIn(svg, values) {
	const most = Math.max(1e-9, ...values);
	const step = 100 / (HISTORY_MS / 1000);
	const from = 100 - (values.length - 1) * step;
	const points = !values.some((v) => v > 0) ? "" : values.map((v, i) => (from + i * step).toFixed(1) + "," + (19 - 18 * v / most).toFixed(1)).join(" ");
	if (!svg.firstChild) {
		svg.setAttribute("viewBox", "0 0 100 20");
		svg.setAttribute("preserveAspectRatio", "none");
		svg.setAttribute("aria-hidden", "true");
		draw(svg, "line", { class: "ground", x1: 0, x2: 100, y1: 19.5, y2: 19.5 });
		draw(svg, "polyline", { class: "trace" });
	}
	svg.lastChild.setAttribute("points", points);
}

// ---- orders ----

let token = "";
let mayOrder = false;
let pinsShown = "";

function headers() {
	return token ? { Authorization: "Bearer " + token } : {};
}

async function order(path, done) {
	let text;
	try {
		const response = await fetch(path, { method: "POST", headers: headers() });
		const body = await response.json();
		text = response.ok ? done(body) : body.error;
		tell(visible(text), !response.ok);
	} catch {
		tell("The gateway did not answer.", true);
	}
}

function tell(text, isBad) {
	mark($("said"), isBad ? "note bad" : "note");
	say($("said"), text);
	$("said").hidden = text === "";
}

// Resolves to whether it was said.
function ask(title, text, yes) {
	const dialog = $("ask");
	say($("ask-title"), title);
	say($("ask-text"), text);
	say($("ask-yes"), yes);
	dialog.returnValue = "";
	dialog.showModal();
	$("ask-no").focus();
	return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

async function endSession(session) {
	const who = session.subject ? " of " + visible(session.subject) : "";
	if (await ask("End session " + visible(session.session) + "?",
		"The session" + who + " at " + visible(session.server) + " ends with its calls in flight (" + session.calls + ").", "End session"))
		await order("/end-session?id=" + encodeURIComponent(session.session), () => "Session " + session.session + " has been ended.");
}

async function restart(server) {
	if (await ask("Restart " + visible(server.name) + "?",
		"Its processes (" + server.processes + ") are replaced. Calls in flight (" + server.calls + ") fail; sessions go on.", "Restart"))
		await order("/restart?server=" + encodeURIComponent(server.name),
			(body) => server.name + ": " + plural(body.restarted, "process is", "processes are") + " being replaced.");
}

async function decide(pin, verb) {
	await order("/pins-" + verb + "?server=" + encodeURIComponent(pin.server) + "&number=" + pin.number + "&digest=" + pin.digest,
		() => pin.kind + " " + pin.name + " of " + pin.server + " has been " + (verb === "approve" ? "approved." : "rejected."));
	pinsShown = "";
}

async function drain() {
	if (await ask("Stop the gateway?",
		"It takes no new work, lets calls in flight finish for a bounded time, and ends. What starts it again is not its own doing.", "Drain and stop"))
		await order("/drain", (body) => "The gateway is stopping; " + plural(body.calls, "call is", "calls are") + " in flight.");
}

// What this page may do. Answers why not, or "".
async function learnAccess() {
	try {
		const response = await fetch("/access", { headers: headers() });
		const body = await response.json();
		if (!response.ok) return body.error;
		mayOrder = body.orders;
		$("unlock").hidden = mayOrder || !body.token;
		say($("access"), mayOrder ? "Orders are on" : "Read-only");
		for (const node of document.querySelectorAll(".order")) node.hidden = !mayOrder;
		return "";
	} catch {
		return "The gateway did not answer.";
	}
}

function orderButton(label, name, run) {
	const button = make("button", { type: "button", className: "order small" }, label);
	button.hidden = !mayOrder;
	button.addEventListener("click", run);
	return button;
}

// ---- the parts of the page ----

const STATES = { ready: "good", starting: "warn", failing: "bad", idle: "idle", retiring: "warn", serving: "good", draining: "warn",
	busy: "good", asleep: "idle", handshake: "warn", stopping: "warn" };

function showState(cell, state, more) {
	say(cell, state + (more ? " " + more : ""));
	mark(cell, "state " + (STATES[state] ?? ""));
}

function stateCell(title) {
	return { title, made: (entry) => (entry.state = make("span", { className: "state" })),
		update: (entry, item) => showState(entry.state, item.state) };
}

function startingText(server) {
	return server.state === "starting" && server.starting_ms !== null ? timeText(server.starting_ms) : "";
}

function causeOf(server) {
	if (server.state !== "failing") return "";
	const next = server.next_try_ms === null ? "" : "; next try in " + timeText(server.next_try_ms);
	return (server.last_failure ? visible(server.last_failure.error) : "it cannot be started") +
		" (" + plural(server.failures_in_a_row, "failure", "failures") + " in a row" + next + ")";
}

const totals = new Map();

function total(name, value, more, values) {
	let entry = totals.get(name);
	if (!entry) {
		entry = { value: make("span", { className: "value" }), more: make("span", { className: "more" }) };
		const dd = make("dd", {}, entry.value, " ", entry.more);
		const box = make("div", {}, make("dt", {}, name), dd);
		if (values) {
			entry.svg = document.createElementNS(SVG, "svg");
			dd.append(entry.svg);
		}
		$("totals").append(box);
		totals.set(name, entry);
	}
	say(entry.value, value);
	say(entry.more, more ?? "");
	if (values) traceIn(entry.svg, values);
}

function showTotals(snapshot) {
	const s = snapshot.status;
	const sum = (member) => s.servers.reduce((n, server) => n + server[member], 0);
	const waiting = sum("waiting"), parked = sum("parked");
	const all = s.servers.map(lately).filter((b) => b);
	const late = all.length > 0 ? all.reduce((a, b) => a.map((n, i) => n + b[i])) : [];
	const cpu = rate((h) => h.usage?.cpu_ms);

	total("Calls per second", rateText(rate((h) => h.calls)), "", rates((h) => h.calls));
	total("In flight", numbers.format(s.calls), "", history.map((h) => h.flying));
	total("Refused per second", rateText(rate((h) => h.refused)), "", rates((h) => h.refused));
	total("Waiting for a process", numbers.format(waiting), parked > 0 ? numbers.format(parked) + " parked" : "");
	total("Answered within, p95", quantile(late, 0.95), late.length > 0 ? "p50 " + quantile(late, 0.5) : "");
	total("Sessions", numbers.format(s.sessions), "of " + numbers.format(s.sessions_max));
	total("Processes", numbers.format(s.processes), sum("starts") > 0 ? numbers.format(sum("starts")) + " started" : "");
	total("Connections", numbers.format(s.connections), snapshot.usage ? "of " + numbers.format(snapshot.usage.connections_max) : "");
	const written = rate((h) => h.usage?.written_bytes), read = rate((h) => h.usage?.read_bytes);
	total("Sent per second", written === null ? "–" : bytesText(written), read === null ? "" : bytesText(read) + " read");
	if (snapshot.usage)
		total("The gateway itself", bytesText(snapshot.usage.resident_bytes), cpu === null ? "" : (cpu / 10).toFixed(1) + "% CPU");
}

function showAttention(snapshot) {
	const list = snapshot.status.problems;
	$("attention").hidden = list.length === 0;
	mark($("attention"), list.some((problem) => problem.severity === "failing") ? "bad" : "");
	keep($("attention-list"), list, (problem) => problem.kind + " " + problem.about, () => ({ nodes: [make("li")] }),
		(entry, problem) => say(entry.nodes[0], visible(problem.text)));
}

// ---- servers ----

let opened = null;

const serverColumns = [
	{ title: "Server", look: "text", made: (entry) => {
		entry.button = make("button", { type: "button", className: "open", "aria-expanded": "false" });
		entry.button.addEventListener("click", () => open(opened === entry ? null : entry));
		entry.cause = make("span", { className: "cause bad" });
		entry.narrow = make("span", { className: "state" });
		return make("div", {}, entry.button, make("div", { className: "narrow" }, entry.narrow), entry.cause);
	}, update: (entry, server) => {
		say(entry.button, visible(server.name));
		showState(entry.narrow, server.state, startingText(server));
		say(entry.cause, causeOf(server));
		entry.cause.hidden = server.state !== "failing";
	} },
	{ title: "State", look: "middle", made: (entry) => (entry.state = make("span", { className: "state" })),
		update: (entry, server) => showState(entry.state, server.state, startingText(server)) },
	{ title: "Calls/s", look: "n", of: (s) => rateText(rate((h) => h.servers.get(serverKey(s))?.answered)) },
	{ title: "Last minute", look: "spark wide", made: (entry) => (entry.svg = document.createElementNS(SVG, "svg")),
		update: (entry, s) => traceIn(entry.svg, rates((h) => h.servers.get(serverKey(s))?.answered)) },
	{ title: "In flight", look: "n", of: (s) => s.calls },
	{ title: "Waiting", look: "n middle", of: (s) => s.waiting },
	{ title: "p50", look: "n wide", update: (e, s, cell) => showQuantile(cell, s, 0.5, "n wide") },
	{ title: "p95", look: "n", update: (e, s, cell) => showQuantile(cell, s, 0.95, "n") },
	{ title: "p99", look: "n wide", update: (e, s, cell) => showQuantile(cell, s, 0.99, "n wide") },
	{ title: "Errors", look: "n middle", of: (s) => s.errors + s.failed },
	{ title: "Refused", look: "n middle", of: (s) => refusalsOf(s).reduce((n, r) => n + r.count, 0) },
	{ title: "Sessions", look: "n middle", of: (s) => s.sessions },
	{ title: "Processes", look: "n middle", of: (s) => s.processes + (s.processes_max ? " / " + s.processes_max : "") },
];

// Of the last minute; what is older is shown in grey.
function showQuantile(cell, server, part, look) {
	const late = lately(server);
	say(cell, quantile(late ?? server.answer_buckets, part));
	mark(cell, look + (late ? "" : " zero"));
}

class Servers extends Table {
	row() {
		const entry = super.row();
		entry.end = () => opened === entry && open(null);
		return entry;
	}

	fill(entry, server) {
		super.fill(entry, server);
		if (entry === opened) showInside(entry);
	}
}

// One at a time: each has a stream of its own for what the server writes.
function open(entry) {
	if (opened) {
		opened.follow.close();
		opened.more.remove();
		opened.nodes.length = 1;
		opened.button.setAttribute("aria-expanded", "false");
	}
	opened = entry;
	if (!entry) return;
	entry.button.setAttribute("aria-expanded", "true");
	makeInside(entry);
	entry.nodes.push(entry.more);
	entry.nodes[0].after(entry.more);
	showInside(entry);
	entry.follow = follow(entry);
}

function makeInside(entry) {
	const name = visible(entry.item.name);
	entry.facts = make("dl");
	entry.answers = make("div");
	entry.waits = make("div");
	entry.lines = make("ol", { className: "lines", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Standard error of " + name });
	entry.lineState = make("span", { className: "legend soft" });
	const legend = () => make("span", { className: "legend" }, make("span", { className: "key" }), "all ", make("span", { className: "key late" }), "last minute");
	const inside = make("div", { className: "inside" },
		make("div", { className: "facts" }, entry.facts,
			make("div", { className: "buttons" }, orderButton("Restart…", name, () => restart(entry.item)))),
		make("div", { className: "answers" }, make("h3", {}, "Time to the answer", legend()), entry.answers),
		make("div", { className: "waits" }, make("h3", {}, "Time until a process was free", legend()), entry.waits),
		make("div", { className: "stderr" }, make("h3", {}, "Standard error", entry.lineState), entry.lines));
	entry.more = make("tr", { className: "more" }, make("td", { colspan: String(serverColumns.length) }, inside));
}

function factsOf(s) {
	const some = (n) => n > 0;
	return [
		["Last failure", s.last_failure && timeText(Date.now() - s.last_failure.at_ms) + " ago: " + s.last_failure.error],
		["Path", s.path],
		["Era", s.era && s.era + (s.era_from ? " (" + s.era_from + ")" : "")],
		["Isolation", s.isolation],
		["Sandbox", s.sandbox],
		["Not in force", s.sandbox_lacks],
		["In flight", s.calls + ", waiting " + s.waiting + ", parked " + s.parked],
		["Answered", numbers.format(s.answered) + ", " + numbers.format(s.errors) + " with an error, " + numbers.format(s.failed) + " failed here"],
		["Refused", refusalsOf(s).map((r) => r.reason + " " + numbers.format(r.count)).join(", ")],
		["Asked to sign in", some(signInsOf(s)) && numbers.format(signInsOf(s))],
		["Sessions", s.sessions + (s.asleep ? ", " + s.asleep + " asleep" : "")],
		["Processes", s.processes + (s.processes_max ? " of " + s.processes_max : "")],
		["Starts", numbers.format(s.starts) + ", " + numbers.format(s.failures) + " failed"],
		["Sanitized", some(s.controls_sanitized + s.invisible_sanitized) &&
			numbers.format(s.controls_sanitized) + " control, " + numbers.format(s.invisible_sanitized) + " invisible characters"],
		["Redacted", some(s.redacted + s.redacted_whole) && plural(s.redacted + s.redacted_whole, "place", "places")],
		["Definitions", some(s.pins) && s.pins + " pinned, " + s.pins_waiting + " waiting"],
	].filter(([, text]) => text);
}

function showInside(entry) {
	const s = entry.item;
	const then = before(HISTORY_MS)?.servers.get(serverKey(s));
	keep(entry.facts, factsOf(s), ([title]) => title, ([title]) => ({ nodes: [make("dt", {}, title), make("dd")] }),
		(fact, [, text]) => say(fact.nodes[1], visible(text)));
	showBars(entry.answers, s.answer_buckets, then?.answer_buckets, "answers");
	showBars(entry.waits, s.wait_buckets, then?.wait_buckets, "calls");
}

// Behind: all since the gateway began; before it: the last minute. Each is a share of its own sum.
function showBars(box, all, then, what) {
	const width = 360, height = 104, base = 88, left = 2;
	const late = all.map((n, i) => Math.max(0, n - (then ? then[i] : n)));
	const most = (buckets) => Math.max(1, ...buckets);
	const step = (width - 2 * left) / all.length;
	if (!box.bars) {
		const svg = document.createElementNS(SVG, "svg");
		svg.setAttribute("viewBox", "0 0 " + width + " " + height);
		svg.setAttribute("class", "bars");
		svg.setAttribute("role", "img");
		draw(svg, "line", { class: "ground", x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5 });
		box.bars = all.map((_, i) => {
			const group = draw(svg, "g", {});
			const title = draw(group, "title", {});
			const bar = (name, narrow) => draw(group, "rect", { class: name, x: left + i * step + narrow, width: step - 2 * narrow });
			if (i % 3 === 0)
				draw(svg, "text", { x: left + i * step, y: height - 4 }).textContent = i === 0 ? "< 1 ms" : limitText(i - 1);
			return { title, all: bar("all", 1), late: bar("late", 4) };
		});
		box.append(svg);
	}
	box.bars.forEach((bar, i) => {
		const heights = { all: all[i] / most(all), late: late[i] / most(late) };
		for (const name of ["all", "late"]) {
			const h = heights[name] > 0 ? Math.max(1.5, heights[name] * (base - 6)) : 0;
			bar[name].setAttribute("y", (base - h).toFixed(1));
			bar[name].setAttribute("height", h.toFixed(1));
		}
		say(bar.title, boundText(i, all.length - 1) + ": " + numbers.format(all[i]) + " " + what + ", " + numbers.format(late[i]) + " in the last minute");
	});
	const sum = all.reduce((a, b) => a + b, 0);
	box.firstChild.setAttribute("aria-label", sum === 0 ? "no " + what + " so far" :
		numbers.format(sum) + " " + what + ": half " + quantile(all, 0.5) + ", 95% " + quantile(all, 0.95) + ", 99% " + quantile(all, 0.99));
}

function follow(entry) {
	const source = new EventSource("/logs?server=" + encodeURIComponent(entry.item.name) + "&follow=1");
	const list = entry.lines;
	let timer = 0;
	say(entry.lineState, "nothing so far");
	source.onopen = () => list.replaceChildren(); // all that is kept comes again
	source.onmessage = (event) => {
		const line = JSON.parse(event.data);
		const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
		const at = new Date(line.at_ms);
		list.append(make("li", {}, make("time", { datetime: at.toISOString() }, at.toLocaleTimeString("en-GB")),
			make("span", { className: "pid" }, String(line.pid)), spell(make("span", { className: "said" }), line.text ?? "")));
		while (list.childElementCount > LINES_MAX) list.firstChild.remove();
		if (isAtEnd) list.scrollTop = list.scrollHeight;
		say(entry.lineState, plural(list.childElementCount, "line", "lines"));
	};
	source.onerror = () => {
		if (source.readyState === EventSource.CLOSED) {
			say(entry.lineState, "cannot be read now");
			timer = setTimeout(() => { if (opened === entry) entry.follow = follow(entry); }, RETRY_MS);
		}
	};
	return { close: () => { clearTimeout(timer); source.close(); } };
}

// ---- sessions, processes, refusals, counters ----

const columnsOf = {
	sessions: [
		{ title: "Session", look: "mono", of: (s) => short(s.session) },
		{ title: "Server", look: "text", of: (s) => short(s.server) },
		stateCell("State"),
		{ title: "Caller", look: "text", of: (s) => short(s.subject ?? s.client ?? "anonymous") },
		{ title: "Program", look: "text", of: (s) => short(s.program ?? "–") },
		{ title: "Address", look: "mono", of: (s) => short(s.address ?? "–") },
		{ title: "Age", look: "n", of: (s) => timeText(s.age_ms) },
		{ title: "Idle for", look: "n", of: (s) => s.state === "busy" ? "–" : timeText(s.idle_ms) },
		{ title: "In flight", look: "n", of: (s) => s.calls },
		{ title: "Waiting", look: "n", of: (s) => s.waiting },
		{ title: "Asked", look: "n", of: (s) => s.asked },
		{ title: "", name: "Orders", look: "act", made: (entry) => orderButton("End…", "", () => endSession(entry.item)),
			update: (entry, s, cell) => cell.firstChild.setAttribute("aria-label", "End session " + s.session) },
	],
	processes: [
		{ title: "Process", look: "mono", of: (p) => String(p.pid) },
		{ title: "Server", look: "text", of: (p) => short(p.server) },
		stateCell("State"),
		{ title: "Age", look: "n", of: (p) => timeText(p.age_ms) },
		{ title: "In flight", look: "n", of: (p) => p.calls },
		{ title: "Answered", look: "n", of: (p) => p.answered },
		{ title: "Unread by it", look: "n", of: (p) => p.stdin_bytes === 0 ? "0" : bytesText(p.stdin_bytes) },
		{ title: "Works for", look: "text", of: (p) => short(p.session ? "session " + p.session : p.subject ?? (p.leased ? "one call" : "–")) },
	],
	refusals: [
		{ title: "Reason", look: "text", of: (r) => short(r.reason) },
		{ title: "Where", look: "text", of: (r) => short(r.where) },
		{ title: "Per second", look: "n", of: (r) => rateText(rate(r.at)) },
		{ title: "Count", look: "n", of: (r) => r.count },
	],
	counters: [
		{ title: "Counter", look: "text", of: (c) => words(c.name) },
		{ title: "Per second", look: "n", of: (c) => rateText(rate((h) => h.counters[c.name])) },
		{ title: "Count", look: "n", of: (c) => c.count },
	],
};

function words(name) {
	const text = name.replaceAll("_", " ");
	return text[0].toUpperCase() + text.slice(1);
}

// What never came as far as a server; other counters of refusals count again what a server's own list has.
const DOOR = ["connections_refused", "arrivals_refused", "requests_bad"];

function doorRows(counters) {
	return DOOR.filter((name) => counters[name] > 0).map((name) =>
		({ reason: words(name), where: "at the door", count: counters[name], at: (h) => h.counters[name] }));
}

function refusalRows(snapshot) {
	const rows = doorRows(snapshot.counters);
	for (const server of snapshot.status.servers)
		for (const r of refusalsOf(server))
			rows.push({ reason: r.reason, where: server.name, count: r.count,
				at: (h) => h.servers.get(serverKey(server))?.refused.find((x) => x.reason === r.reason)?.count ?? 0 });
	return rows.sort((a, b) => b.count - a.count);
}

const tables = {
	servers: new Servers($("servers"), serverColumns, serverKey),
	sessions: new Table($("sessions"), columnsOf.sessions, (s) => s.session),
	processes: new Table($("processes"), columnsOf.processes, (p) => p.server + " " + p.pid),
	refusals: new Table($("refusals"), columnsOf.refusals, (r) => r.where + " " + r.reason),
	counters: new Table($("counters"), columnsOf.counters, (c) => c.name),
};

function count(part, shown, all) {
	say($(part).querySelector(".count"), shown < all ? numbers.format(shown) + " of " + numbers.format(all) : numbers.format(all));
}

function fits(session, filter) {
	return [session.session, session.server, session.subject, session.client, session.program, session.address, session.state]
		.some((text) => (text ?? "").toLowerCase().includes(filter));
}

function showLists(snapshot) {
	const filter = $("session-filter").value.trim().toLowerCase();
	// In one order, whichever of them work just now: who is about to press a button does not want it to move.
	const sessions = snapshot.sessions.filter((s) => filter === "" || fits(s, filter))
		.sort((a, b) => b.age_ms - a.age_ms || (a.session < b.session ? -1 : 1));
	const refusals = refusalRows(snapshot);
	const counted = Object.entries(snapshot.counters).filter(([, n]) => n > 0).map(([name, n]) => ({ name, count: n }));

	tables.sessions.show(sessions);
	count("sessions", sessions.length, snapshot.status.sessions);
	tables.processes.show(snapshot.processes);
	count("processes", snapshot.processes.length, snapshot.status.processes);
	tables.refusals.show(refusals);
	const signIns = snapshot.status.servers.reduce((n, s) => n + signInsOf(s), 0);
	say($("refusals").querySelector(".count"), numbers.format(refusals.reduce((n, r) => n + r.count, 0)) +
		(signIns > 0 ? "; " + numbers.format(signIns) + " asked to sign in" : ""));
	tables.counters.show(counted);
}

// ---- definitions that wait ----

function pinTexts(pin) {
	const box = (title, text) => make("div", {}, make("h3", {}, title), make("pre", { tabindex: "0" }, text === null ? "(not kept)" : visible(text)));
	return pin.state === "changed" ? [box("Approved", pin.approved), box("Now", pin.waiting)] : [box("New", pin.waiting)];
}

async function showPins(snapshot) {
	const waiting = snapshot.status.servers.reduce((n, s) => n + s.pins_waiting, 0);
	const seen = snapshot.status.servers.map((s) => s.name + s.pins_waiting).join() + snapshot.counters.pins_waiting + mayOrder;
	const wasHidden = $("pins").hidden;
	$("pins").hidden = waiting === 0;
	if (wasHidden && waiting > 0) $("pins").open = true;
	say($("pins").querySelector(".count"), numbers.format(waiting));
	if (seen === pinsShown || (waiting === 0 && pinsShown === "")) return;
	pinsShown = seen;
	try {
		const { pins } = await (await fetch("/pins")).json();
		keep($("pin-list"), pins.filter((p) => p.digest !== null).slice(0, 100), (p) => p.server + " " + p.number + " " + p.digest + mayOrder, (pin) => {
			const buttons = make("span", { className: "buttons" },
				orderButton("Approve", "", () => decide(pin, "approve")), orderButton("Reject", "", () => decide(pin, "reject")));
			for (const button of buttons.children)
				button.setAttribute("aria-label", button.textContent + " " + pin.kind + " " + visible(pin.name));
			return { nodes: [make("li", {}, make("div", { className: "head" }, make("strong", {}, visible(pin.name)),
				make("span", { className: "soft" }, pin.kind + " of " + visible(pin.server) + ", " + pin.state + ", " + pin.until_approved + " until approved"),
				buttons), make("div", { className: "texts" }, ...pinTexts(pin)))] };
		}, () => {});
	} catch {
		pinsShown = "";
	}
}

// ---- the stream ----

let source = null;
let heardAt = 0;
let latest = null;
let retry = 0;

function showAll(snapshot) {
	const s = snapshot.status;
	say($("version"), visible(s.version));
	showState($("state"), s.state, "for " + timeText(s.uptime_ms));
	say($("since"), new Date(snapshot.at_ms - s.uptime_ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
	showTotals(snapshot);
	showAttention(snapshot);
	tables.servers.show(s.servers);
	showLists(snapshot);
	showPins(snapshot);
}

function showLive() {
	const silent = Date.now() - heardAt;
	const isLive = source !== null && heardAt > 0 && silent < SILENT_MS;
	mark($("live"), isLive ? "live" : "live bad");
	say($("live"), isLive ? "live" : heardAt === 0 ? "connecting" : "no contact; what is shown is from " + new Date(heardAt).toLocaleTimeString("en-GB"));
	document.body.toggleAttribute("data-live", isLive);
}

function connect() {
	clearTimeout(retry);
	source?.close();
	source = new EventSource("/events");
	source.onopen = learnAccess;
	source.onmessage = (event) => {
		latest = JSON.parse(event.data);
		heardAt = Date.now();
		remember(latest);
		showAll(latest);
		showLive();
	};
	// The browser tries again by itself, but not after an answer that is no stream: too many look already, or it is stopping.
	source.onerror = () => {
		showLive();
		if (source?.readyState === EventSource.CLOSED) retry = setTimeout(connect, RETRY_MS);
	};
}

function disconnect() {
	clearTimeout(retry);
	source?.close();
	source = null;
	open(null);
}

let hidden = 0;
document.addEventListener("visibilitychange", () => {
	clearTimeout(hidden);
	if (document.hidden) hidden = setTimeout(disconnect, HIDDEN_MS);
	else if (!source) connect();
});

$("session-filter").addEventListener("input", () => latest && showLists(latest));
$("drain").addEventListener("click", drain);
$("ask-no").addEventListener("click", () => $("ask").close(""));
$("enter-no").addEventListener("click", () => $("enter").close());
$("ask").querySelector("form").addEventListener("submit", (event) => {
	event.preventDefault();
	$("ask").close("yes");
});
$("unlock").addEventListener("click", () => {
	$("token").value = "";
	say($("enter-why"), "");
	$("enter").showModal();
});
$("enter").querySelector("form").addEventListener("submit", async (event) => {
	event.preventDefault();
	token = $("token").value.trim();
	const why = await learnAccess();
	if (why) token = "";
	say($("enter-why"), why);
	if (!why) $("enter").close();
});
setInterval(showLive, 1000);
connect();
