/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids are compared as they were written: a server that spells one in two ways only makes its client
 * wait for the full time.
 */
#include "router/url_pending.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "router/call.h"

struct item {
	struct list link;
	uint64_t child;
	size_t length;
	char id[];
};

static struct item *find(const struct url_pending *pending, uint64_t child, struct slice id)
{
	LIST_EACH(struct item, item, &pending->items, link)
		if (item->child == child && slice_is_equal(slice_of(item->id, item->length), id))
			return item;
	return NULL;
}

static void drop(struct url_pending *pending, struct item *item)
{
	list_remove(&item->link);
	pending->count--;
	free(item);
}

/* ---- waiting ---- */

struct look {
	const struct url_pending *pending;
	uint64_t child;
	bool is_found;
};

static int look_at(struct slice element, void *arg)
{
	struct look *look = arg;
	struct slice id = scan_member(element, SLICE_LIT("id")).text;

	look->is_found = find(look->pending, look->child, id) != NULL;
	return look->is_found ? -1 : 0;
}

static bool is_any_pending(const struct url_pending *pending, const struct url_waiter *waiter)
{
	struct look look = { .pending = pending, .child = waiter->child };
	int count = scan_array(waiter->wanted, URL_ELICITATIONS_MAX, look_at, &look, NULL);

	CHECK(count > 0 || look.is_found);
	return look.is_found;
}

bool url_pending_wait(struct url_pending *pending, struct url_waiter *waiter)
{
	CHECK(waiter->on_over != NULL);
	if (!is_any_pending(pending, waiter))
		return false;
	list_append(&pending->waiters, &waiter->link);
	return true;
}

void url_waiter_leave(struct url_waiter *waiter)
{
	list_remove(&waiter->link);
}

static void tell_waiters(struct url_pending *pending, uint64_t child)
{
	LIST_EACH_SAFE(struct url_waiter, waiter, &pending->waiters, link) {
		if (waiter->child != child || is_any_pending(pending, waiter))
			continue;
		url_waiter_leave(waiter);
		waiter->on_over(waiter);
	}
}

/* ---- what is pending ---- */

struct adding {
	struct url_pending *pending;
	uint64_t child;
};

static int add_one(struct slice element, void *arg)
{
	const struct adding *adding = arg;
	struct url_pending *pending = adding->pending;
	struct slice id = scan_member(element, SLICE_LIT("id")).text;
	struct item *item;

	if (find(pending, adding->child, id) != NULL)
		return 0;
	if (pending->count >= URL_PENDING_MAX)
		drop(pending, container_of(pending->items.next, struct item, link));
	item = mem_alloc(sizeof(*item) + id.n);
	item->child = adding->child;
	item->length = id.n;
	memcpy(item->id, id.p, id.n);
	list_init(&item->link);
	list_append(&pending->items, &item->link);
	pending->count++;
	return 0;
}

void url_pending_add(struct url_pending *pending, uint64_t child, struct slice wanted)
{
	struct adding adding = { pending, child };

	CHECK(scan_array(wanted, URL_ELICITATIONS_MAX, add_one, &adding, NULL) > 0);
}

bool url_pending_end(struct url_pending *pending, uint64_t child, struct slice id)
{
	struct item *item = find(pending, child, id);

	if (item == NULL)
		return false;
	drop(pending, item);
	tell_waiters(pending, child);
	return true;
}

void url_pending_forget(struct url_pending *pending, uint64_t child)
{
	LIST_EACH_SAFE(struct item, item, &pending->items, link)
		if (item->child == child)
			drop(pending, item);
	tell_waiters(pending, child);
}

/* ---- beginning and end ---- */

void url_pending_init(struct url_pending *pending)
{
	*pending = (struct url_pending){ .count = 0 };
	list_init(&pending->items);
	list_init(&pending->waiters);
}

/* ---- url elicitation ---- */

/*
 * Only what is examined here is passed on, so names that are repeated, or written with escapes,
 * mean nothing to a client.
 */

#define URL_ELICITATION_REQUIRED (-32042)

static struct json member(struct slice object, const char *name)
{
	return scan_member(object, slice_str(name));
}

/* ---- what a server wants ---- */

static int read_one(struct slice element, void *arg)
{
	struct buf *wanted = arg;
	struct json id = member(element, "elicitationId");
	struct json message = member(element, "message");
	struct json url = member(element, "url");
	struct slice mode = scan_plain_string(member(element, "mode"));

	if (id.type != JSON_STRING || id.text.n > URL_ELICITATION_ID_MAX ||
	    message.type != JSON_STRING || url.type != JSON_STRING ||
	    !slice_is_equal(mode, SLICE_LIT("url")) ||
	    wanted->len + message.text.n + url.text.n > URL_ELICITATIONS_BYTES_MAX)
		return -1;
	buf_append_str(wanted, wanted->len == 0 ? "[{\"id\":" : ",{\"id\":");
	buf_append_slice(wanted, id.text);
	write_member(wanted, SLICE_LIT("message"), message.text);
	write_member(wanted, SLICE_LIT("url"), url.text);
	buf_append_char(wanted, '}');
	return 0;
}

bool url_elicitation_read(struct slice error, struct buf *wanted)
{
	static const char *const path[] = { "data", "elicitations" };
	struct json elicitations;
	long long code;

	CHECK(wanted->len == 0);
	if (value_read_integer(member(error, "code"), &code) < 0 ||
	    code != URL_ELICITATION_REQUIRED)
		return false;
	elicitations = scan_path(error, path, ARRAY_LEN(path)); /* it may be long */
	if (elicitations.type != JSON_ARRAY ||
	    scan_array(elicitations.text, URL_ELICITATIONS_MAX, read_one, wanted, NULL) <= 0) {
		wanted->len = 0;
		return false;
	}
	buf_append_char(wanted, ']');
	return true;
}

/* ---- what a client is asked ---- */

/* Calls on_element for each element. Cannot fail: we wrote the text. */
static void each(struct slice wanted, scan_element_fn *on_element, void *arg)
{
	CHECK(scan_array(wanted, URL_ELICITATIONS_MAX, on_element, arg, NULL) > 0);
}

struct asking {
	struct buf *out;
	size_t number;
};

static int append_request(struct slice element, void *arg)
{
	struct asking *asking = arg;
	struct json url = member(element, "url");

	asking->number++;
	if (url.type == JSON_ABSENT)
		return 0;
	buf_printf(asking->out,
		   "%s\"e%zu\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"",
		   asking->out->len > 0 ? "," : "", asking->number);
	write_member(asking->out, SLICE_LIT("message"), member(element, "message").text);
	write_member(asking->out, SLICE_LIT("url"), url.text);
	buf_append_str(asking->out, "}}");
	return 0;
}

void url_elicitation_append_requests(struct buf *out, struct slice wanted)
{
	struct asking asking = { .out = out };

	CHECK(out->len == 0);
	each(wanted, append_request, &asking);
}

/* ---- what it answers ---- */

enum answer { NOT_ASKED, MISSING, ACCEPTED, DECLINED };

struct answers {
	enum answer of[URL_ELICITATIONS_MAX];
	size_t count; /* of what was wanted */
	bool is_malformed;
	struct buf *left;
	size_t copied;
};

static int note_asked(struct slice element, void *arg)
{
	struct answers *answers = arg;

	answers->of[answers->count++] =
		member(element, "url").type == JSON_ABSENT ? NOT_ASKED : MISSING;
	return 0;
}

static int note_answer(struct slice name, struct json value, void *arg)
{
	struct answers *answers = arg;
	struct slice action = scan_plain_string(member(value.text, "action"));
	enum answer *answer;
	uint64_t number;

	if (name.n < 2 || name.p[0] != 'e' || name.p[1] == '0' ||
	    text_parse_u64(slice_of(name.p + 1, name.n - 1), &number) < 0 ||
	    number > answers->count || answers->of[number - 1] == NOT_ASKED)
		return 0;
	answer = &answers->of[number - 1];
	answers->is_malformed = *answer != MISSING; /* it was answered twice */
	if (slice_is_equal(action, SLICE_LIT("accept")))
		*answer = ACCEPTED;
	else if (slice_is_equal(action, SLICE_LIT("decline")) ||
		 slice_is_equal(action, SLICE_LIT("cancel")))
		*answer = DECLINED;
	else
		answers->is_malformed = true;
	return answers->is_malformed ? -1 : 0;
}

static bool has(const struct answers *answers, enum answer answer)
{
	for (size_t i = 0; i < answers->count; i++)
		if (answers->of[i] == answer)
			return true;
	return false;
}

static int copy_left(struct slice element, void *arg)
{
	struct answers *answers = arg;

	buf_append_char(answers->left, answers->copied == 0 ? '[' : ',');
	if (answers->of[answers->copied++] == MISSING) {
		buf_append_slice(answers->left, element);
		return 0;
	}
	buf_append_str(answers->left, "{\"id\":");
	buf_append_slice(answers->left, member(element, "id").text);
	buf_append_char(answers->left, '}');
	return 0;
}

enum url_answers url_elicitation_read_answers(struct slice wanted, struct json responses,
					      struct buf *left)
{
	struct answers answers = { .left = left };

	if (responses.type != JSON_ABSENT && responses.type != JSON_OBJECT)
		return URL_ANSWERS_MALFORMED;
	each(wanted, note_asked, &answers);
	scan_members(responses.text, note_answer, &answers);
	if (answers.is_malformed)
		return URL_ANSWERS_MALFORMED;
	if (has(&answers, DECLINED))
		return URL_ANSWERS_DECLINED;
	if (!has(&answers, MISSING))
		return URL_ANSWERS_ACCEPTED;
	each(wanted, copy_left, &answers);
	buf_append_char(left, ']');
	return URL_ANSWERS_PARTIAL;
}
