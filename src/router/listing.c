/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients may use, which tools are counted by name, and pins. The items that are shown are
 * copied whole and unchanged.
 */
#include "router/listing.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/name.h"
#include "policy/permissions.h"
#include "process/pin_memory.h"
#include "process/server.h"
#include "router/call.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/pages.h"

struct filter {
	const struct server *server;
	const struct rights *rights;
	const struct listing_kind *kind;
	struct json list; /* of that kind */
	struct buf *out;
	size_t kept;     /* of its items */
	size_t folded;   /* listing_kind_may_fold */
	bool is_shown;   /* items may be shown differently */
	bool is_changed; /* something is left out, or shown differently */
};

static int take_item(struct slice item, void *arg)
{
	struct filter *filter = arg;
	struct json name = scan_member(item, filter->kind->name);
	const struct server *server = filter->server;
	enum permission_kind kind = filter->kind->kind;

	if (!listing_kind_may_fold(name.text, &filter->folded) ||
	    !permissions_allow_json(&server->conf.permissions, filter->rights, kind, name) ||
	    !needs_show(&server->conf.needs, filter->rights, kind, name) ||
	    !pinning_shows(server, kind, name)) {
		filter->is_changed = true;
		return 0;
	}
	if (filter->kept > 0)
		buf_append_char(filter->out, ',');
	if (!filter->is_shown) {
		buf_append_slice(filter->out, item);
	} else if (!shown_append(&server->conf.shown, kind, item, filter->out)) {
		filter->out->len -= filter->kept > 0;
		return 0;
	}
	filter->kept++;
	return 0;
}

/* Where definitions are approved, nothing else that a model could read stands beside them. */
static bool is_beside(const struct filter *filter, struct slice name)
{
	static const struct slice names[] = { SLICE("nextCursor"), SLICE("resultType"),
					      SLICE("ttlMs"), SLICE("cacheScope") };

	return filter->server->conf.pin != PIN_ENFORCE ||
	       slices_has((struct slices){ names, ARRAY_LEN(names) }, name);
}

static int listing_take_member(struct slice name, struct json value, void *arg)
{
	struct filter *filter = arg;
	bool is_list = value.text.p == filter->list.text.p;

	if (!is_list && !is_beside(filter, name)) {
		filter->is_changed = true;
		return 0;
	}
	write_comma(filter->out);
	buf_append_slice(filter->out, slice_between(name.p - 1, value.text.p));
	if (!is_list) {
		buf_append_slice(filter->out, value.text);
		return 0;
	}
	buf_append_char(filter->out, '[');
	CHECK(scan_array(value.text, SIZE_MAX, take_item, filter, NULL) >= 0);
	buf_append_char(filter->out, ']');
	return 0;
}

static const struct envelope *filter_list(struct convert *convert, struct filter *filter,
					  const struct envelope *env)
{
	struct slice result = env->result.text;

	buf_append_slice(&convert->text, slice_between(env->text.p, result.p));
	scan_members_into(&convert->text, result, listing_take_member, filter);
	return filter->is_changed ? convert_finish(convert, env, result) : env;
}

const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env)
{
	const struct server *server = call->client->server;
	const struct server_conf *conf = &server->conf;
	struct filter filter = { .server = server, .out = &convert->text };

	/* A reload may have changed them since it was sent. */
	filter.rights = call_is_stale(call) ? &call->client->rights : &call->rights;
	filter.kind = listing_kind_find(call->method);
	if (filter.kind == NULL || env->kind != ENVELOPE_RESULT)
		return env;
	filter.is_changed = filter.is_shown = shown_differs(&conf->shown, filter.kind->kind);
	if (!conf->permissions.has_rules && !filter.rights->needs_roles && !conf->needs.hides &&
	    conf->pin != PIN_ENFORCE && !filter.is_shown)
		return env;
	if (listing_kind_find_items(filter.kind, env->result.text, &filter.list) < 0)
		return NULL;
	return filter.list.type == JSON_ARRAY ? filter_list(convert, &filter, env) : env;
}

/* ---- entries of deny ---- */

bool deny_watch_next(const struct server *server, size_t *index, struct rule *rule_r)
{
	const struct deny_watch *watch = &server->deny_watch;
	struct permission_verdict verdict;
	struct slice pattern;

	CHECK(!watch->is_whole || server->conf.name != NULL);
	if (!watch->is_whole || watch->rules != server->rules)
		return false;
	while (*index < DENY_WATCHED &&
	       permissions_deny_at(&server->conf.permissions, PERMISSION_TOOL, *index, &verdict,
				   &pattern)) {
		if ((watch->fitting & UINT64_C(1) << (*index)++) != 0)
			continue;
		*rule_r = permission_rule(PERMISSION_TOOL, &verdict);
		return true;
	}
	return false;
}

/* ---- pinning ---- */

/* A server can change its definitions as fast as it likes: log lines about that are limited. */

#define LINES_MAX 32 /* of one server, in LINES_MS */
#define LINES_MS (60 * 1000)

/* ---- reporting ---- */

static bool may_tell(struct server *server)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms - server->pins_told_since_ms >= LINES_MS) {
		server->pins_told_since_ms = now_ms;
		server->pins_told = 0;
	}
	if (++server->pins_told == LINES_MAX)
		LOG_BY(PINS_QUIET, (uintptr_t)server, LOG_STR("server", server->conf.name));
	return server->pins_told < LINES_MAX;
}

static void tell_waiting(struct server *server, const struct pin_item *item, const char *what)
{
	counter_add(COUNTER_PINS_WAITING);
	if (may_tell(server))
		LOG_BY(PIN_WAITS, (uintptr_t)server, LOG_STR("server", server->conf.name),
		       LOG_STR("kind", pin_kind_name(item->kind)), LOG_SLICE("name", item->name),
		       LOG_STR("is", what),
		       LOG_STR("until_approved",
			       server->conf.pin == PIN_ENFORCE ? "withheld" : "passed on"));
}

static void tell_moved(struct server *server, const struct pin *pin, const char *what)
{
	if (may_tell(server))
		LOG_BY(PIN_MOVED, (uintptr_t)server, LOG_STR("server", server->conf.name),
		       LOG_STR("kind", pin_kind_name(pin->kind)), LOG_SLICE("name", pin->name),
		       LOG_STR("is", what));
}

static void tell_unpinned(struct server *server, const struct pin_item *item)
{
	if (server->pins_have_overflown)
		return;
	server->pins_have_overflown = true;
	LOG_BY(PINS_FULL, (uintptr_t)server, LOG_STR("server", server->conf.name),
	       LOG_STR("kind", pin_kind_name(item->kind)), LOG_SLICE("name", item->name),
	       LOG_INT("items", server->pins.count));
}

static void listing_tell(struct server *server, const struct pin_item *item, enum pin_news news)
{
	switch (news) {
	case PIN_CAME:
		tell_waiting(server, item, "new");
		break;
	case PIN_DIFFERS:
		tell_waiting(server, item, "changed");
		break;
	case PIN_CAME_BACK:
		tell_moved(server, pins_find(&server->pins, item->kind, item->folded), "back");
		break;
	case PIN_NO_ROOM:
		tell_unpinned(server, item);
		break;
	case PIN_SAME:
	case PIN_FIRST:
		break;
	}
}

/* ---- looking ---- */

/* A list as it comes, or what the server says of itself. */
struct look {
	struct server *server;
	const struct listing_kind *kind;
	bool collides;     /* items may have the name of another one, which is not told yet */
	bool watches_deny; /* tools may fit entries of deny */
	bool is_clear;     /* clients see the items that are pinned */
	struct buf name, folded, text; /* of the item */
	size_t folded_bytes;           /* listing_kind_may_fold */
	uint64_t number;               /* of this look */
};

static void look_fini(struct look *look)
{
	buf_fini(&look->name);
	buf_fini(&look->folded);
	buf_fini(&look->text);
}

static void note_collision(const struct look *look, struct slice name)
{
	struct server *server = look->server;

	if (!look->collides || shown_is_reachable(&server->conf.shown, look->kind->kind, name))
		return;
	server->collisions_told = server->rules + 1;
	LOG_BY(NAMES_COLLIDE, (uintptr_t)server, LOG_STR("server", server->conf.name),
	       LOG_SLICE("list", look->kind->member), LOG_SLICE("name", name));
}

static void note_denied(const struct look *look, struct slice name)
{
	struct server *server = look->server;
	struct permission_verdict verdict;
	struct slice form, pattern;
	at_end(buf_fini) struct buf folded = { 0 };

	if (!look->watches_deny ||
	    permission_read_form(PERMISSION_TOOL, name, &folded, &form) != NULL)
		return;
	for (size_t i = 0;
	     i < DENY_WATCHED &&
	     permissions_deny_at(&server->conf.permissions, PERMISSION_TOOL, i, &verdict, &pattern);
	     i++)
		if (permission_fits_deny(PERMISSION_TOOL, form, pattern))
			server->deny_watch.fitting |= UINT64_C(1) << i;
}

/* The definition in look->text. */
static void note_definition(struct look *look, struct pin_item *item)
{
	struct pins *pins = &look->server->pins;
	struct digest digest;
	enum pin_news news;

	digest_bytes(buf_slice(&look->text), &digest);
	memcpy(item->definition.digest, digest.bytes, sizeof(digest.bytes));
	if (!pins->follows || item->kind == PIN_SERVER)
		item->definition.text = buf_slice(&look->text);
	news = pins_note(pins, item);
	if (!pins->follows)
		listing_tell(look->server, item, news);
}

/* One whose name cannot be remembered is reported like one for which there is no room. */
static void note_item(struct look *look, bool is_named, struct slice written, struct slice item)
{
	struct pin_item pin = { .kind = look->kind->kind, .name = buf_slice(&look->name) };

	look->folded.len = look->text.len = 0;
	is_named = is_named && listing_kind_may_fold(written, &look->folded_bytes) &&
		   permission_fold(pin.kind, pin.name, &look->folded) == NULL;
	pin.folded = is_named ? buf_slice(&look->folded) : slice_of(NULL, 0);
	if (is_named && canonical_append(&look->text, item, SCAN_DEPTH_MAX) == 0)
		note_definition(look, &pin);
	else if (!look->server->pins.follows)
		tell_unpinned(look->server, &pin);
}

static int look_at_item(struct slice item, void *arg)
{
	struct look *look = arg;
	struct json name = scan_member(item, look->kind->name);
	bool is_named;

	look->name.len = 0;
	is_named = scan_decode_string(name, &look->name) == 0;
	if (is_named && look->kind->kind == PERMISSION_TOOL)
		call_stats_note_tool(&look->server->stats->calls, buf_slice(&look->name));
	if (is_named) {
		note_collision(look, buf_slice(&look->name));
		note_denied(look, buf_slice(&look->name));
	}
	if (look->is_clear)
		note_item(look, is_named, name.text, item);
	return 0;
}

static bool begin_deny_watch(struct server *server, const struct listing_kind *kind)
{
	struct permission_verdict verdict;
	struct slice pattern;

	if (kind->kind != PERMISSION_TOOL ||
	    !permissions_deny_at(&server->conf.permissions, PERMISSION_TOOL, 0, &verdict, &pattern))
		return false;
	if (server->deny_watch.rules != server->rules)
		server->deny_watch = (struct deny_watch){ .rules = server->rules };
	return true;
}

/* What a reload has cut in two is no whole list. */
static void end_deny_watch(struct look *look, uint64_t page, struct json cursor)
{
	struct deny_watch *watch = &look->server->deny_watch;

	if (!look->watches_deny || (page != 0 && page != watch->page))
		return;
	watch->page = cursor.type == JSON_STRING ? listing_kind_page(cursor) : 0;
	watch->is_whole |= cursor.type != JSON_STRING;
}

static void end_page(struct look *look, uint64_t page, struct json cursor)
{
	struct pins *pins = &look->server->pins;
	uint64_t next = cursor.type == JSON_STRING ? listing_kind_page(cursor) : 0;
	bool is_whole = page == 0 && next == 0;
	const struct pin *gone = NULL;

	pins_end_page(pins, look->kind->kind, page, next);
	/* If others have looked meanwhile (io/aside), what is gone cannot be told; the next list will show it. */
	while (is_whole && !pins->follows && pins->look == look->number &&
	       (gone = pins_take_gone(pins, look->kind->kind, gone)) != NULL)
		tell_moved(look->server, gone, "gone");
}

/* Begins to look at what is pinned as this kind. Returns whether there has been none before. */
static bool begin_pins(struct server *server, enum permission_kind kind)
{
	if (server->conf.pin == PIN_OFF)
		server->pins.follows = true; /* a reload may turn them on. SEC-65 */
	return !server->pins.follows && !server->pins.is_known[kind];
}

void listing_look(struct server *server, const struct method *method, struct slice result,
		  uint64_t page)
{
	at_end(look_fini) struct look look = { .server = server,
					       .kind = listing_kind_find(method) };
	struct json items, cursor;
	bool is_first;

	CHECK(server->conf.name != NULL);
	if (look.kind == NULL)
		return;
	is_first = begin_pins(server, look.kind->kind);
	look.is_clear = listing_kind_find_items(look.kind, result, &items) == 0;
	look.collides = server->collisions_told != server->rules + 1 &&
			server->conf.shown.kinds[look.kind->kind].names.count > 0;
	look.watches_deny = items.type == JSON_ARRAY && begin_deny_watch(server, look.kind);
	if (look.is_clear)
		pins_begin_look(&server->pins);
	look.number = server->pins.look;
	if (items.type == JSON_ARRAY)
		CHECK(scan_array(items.text, SIZE_MAX, look_at_item, &look, NULL) >= 0);
	cursor = scan_member(result, SLICE_LIT("nextCursor"));
	end_deny_watch(&look, page, cursor);
	if (look.is_clear)
		end_page(&look, page, cursor);
	else if (!server->pins.follows && may_tell(server))
		LOG_BY(LIST_AMBIGUOUS, (uintptr_t)server, LOG_STR("server", server->conf.name),
		       LOG_SLICE("method", method->name));
	pin_memory_note(server->pin_memory, is_first);
}

/* ---- what a server says of itself ---- */

static const struct slice spoken[] = { SLICE("instructions"), SLICE("serverInfo") };
#define SPOKEN_INFO 1

/* Collects what clients could read as the member `name`; of serverInfo, what it has besides name and version. */
struct saying {
	struct slice name;
	struct buf text;
	bool is_info;
	bool is_bad;
};

static bool listing_is_called(struct slice written, struct slice name)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice meant;

	return scan_read_name(written, &room, &meant) == 0 && text_is_lookalike(meant, name);
}

static bool is_identity(struct slice name)
{
	return slice_is_equal(name, SLICE_LIT("name")) ||
	       slice_is_equal(name, SLICE_LIT("version"));
}

static void note_saying(struct look *look, struct saying *saying)
{
	struct pin_item item = { .kind = PIN_SERVER, .name = saying->name };

	look->folded.len = look->text.len = 0;
	if (saying->is_info && saying->text.len > 0)
		buf_append_char(&saying->text, '}');
	/* What cannot be compared, or is there twice, is not approved either: it counts as it is written. */
	if (saying->text.len == 0 ||
	    permission_fold(PIN_SERVER, saying->name, &look->folded) != NULL || saying->is_bad ||
	    canonical_append(&look->text, buf_slice(&saying->text), SCAN_DEPTH_MAX) < 0)
		return;
	item.folded = buf_slice(&look->folded);
	note_definition(look, &item);
}

static void read_saying(struct saying *saying, struct slice result, size_t which)
{
	CHECK(which < ARRAY_LEN(spoken));
	*saying = (struct saying){ .name = spoken[which], .is_info = which == SPOKEN_INFO };
	SCAN_MEMBERS(member, result) {
		if (!listing_is_called(member.name, saying->name) || member.value.type == JSON_NULL)
			continue;
		saying->is_bad = saying->is_bad || saying->text.len > 0;
		if (!saying->is_info)
			buf_append_slice(&saying->text, member.value.text);
		SCAN_MEMBERS(info, saying->is_info ? member.value.text : slice_of(NULL, 0)) {
			if (is_identity(info.name))
				continue;
			if (saying->text.len == 0)
				buf_append_char(&saying->text, '{');
			write_member(&saying->text, info.name, info.value.text);
		}
	}
}

static void look_at_server(struct server *server, struct slice result)
{
	at_end(look_fini) struct look look = { .server = server };
	bool is_first = begin_pins(server, PIN_SERVER);

	for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
		struct saying saying;

		read_saying(&saying, result, i);
		note_saying(&look, &saying);
		buf_fini(&saying.text);
	}
	pins_end_page(&server->pins, PIN_SERVER, 0, 0);
	pin_memory_note(server->pin_memory, is_first);
}

/* ---- withholding ---- */

/* A member of the server's result, without what is withheld of it. */
static void put_shown(struct buf *out, const struct scan_cursor *member, const bool *is_withheld)
{
	for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
		if (!is_withheld[i] || !listing_is_called(member->name, spoken[i]))
			continue;
		if (i == SPOKEN_INFO) {
			write_member(out, member->name, SLICE_LIT("{"));
			SCAN_MEMBERS(info, member->value.text)
				if (is_identity(info.name))
					write_member(out, info.name, info.value.text);
			buf_append_char(out, '}');
		}
		return;
	}
	write_member(out, member->name, member->value.text);
}

/* Of one process the definition may be the approved one, while that of another waits: neither is shown. */
static bool is_withheld(const struct server *server, struct slice result, size_t which)
{
	struct saying saying;
	bool is_said;
	const struct pin *pin;
	at_end(buf_fini) struct buf folded = { 0 };

	read_saying(&saying, result, which);
	is_said = saying.text.len > 0;
	buf_fini(&saying.text);
	if (!is_said || permission_fold(PIN_SERVER, spoken[which], &folded) != NULL)
		return false;
	pin = pins_find(&server->pins, PIN_SERVER, buf_slice(&folded));
	return saying.is_bad || pin == NULL || pin->state != PIN_APPROVED;
}

static const struct envelope *without_withheld(struct convert *convert, const struct server *server,
					       const struct envelope *response)
{
	struct slice result = response->result.text;
	bool is_whole = true, withheld[ARRAY_LEN(spoken)] = { false };

	for (size_t i = 0; server->conf.pin == PIN_ENFORCE && i < ARRAY_LEN(spoken); i++) {
		withheld[i] = is_withheld(server, result, i);
		is_whole = is_whole && !withheld[i];
	}
	if (is_whole)
		return response;
	buf_append_slice(&convert->text, slice_between(response->text.p, result.p));
	buf_append_char(&convert->text, '{');
	SCAN_MEMBERS(member, result)
		put_shown(&convert->text, &member, withheld);
	buf_append_char(&convert->text, '}');
	return convert_finish(convert, response, result);
}

const struct envelope *pinning_take_server(struct convert *convert, struct server *server,
					   const struct envelope *response)
{
	look_at_server(server, response->result.text);
	return without_withheld(convert, server, response);
}

bool pinning_shows(const struct server *server, enum permission_kind kind, struct json name)
{
	return server->conf.pin != PIN_ENFORCE ||
	       pins_state_json(&server->pins, kind, name) == PIN_APPROVED;
}

/*
 * What no list has shown yet is judged later (pin_check), or is a resource that a template stands
 * for.
 */
static bool is_not_waiting(enum permission_kind kind, struct json name, void *arg)
{
	enum pin_state state = pins_state_json(arg, kind, name);

	return state == PIN_APPROVED || state == PIN_UNSEEN;
}

const char *pinning_find_withheld(const struct server *server, const struct envelope *env)
{
	if (server->conf.pin != PIN_ENFORCE)
		return NULL;
	/* A call sent as a notification cannot wait for a list: there is nobody to tell. */
	if (env->kind == ENVELOPE_NOTIFICATION && operation_of(env) != OPERATION_OTHER)
		return "notification";
	if (server->pins.waiting == 0)
		return NULL;
	return uses_visit(env, is_not_waiting, (void *)(uintptr_t)&server->pins);
}
