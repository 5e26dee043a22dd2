/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the envelope of one message. The grammar (grammar.c) walks over every byte; here the three
 * objects whose members the gateway reads - the message, params, params._meta, result - are walked
 * member by member, and everything else is one value that is only checked. Does not look at what methods
 * mean.
 *
 * Invariant: a rule of JSON-RPC is judged only when the whole text is known to be JSON, so that the
 * same text always gets the same code, wherever in it the fault stands.
 *
 * JSON-RPC 2.0 §4, §5; RPC-01, FRONT-HTTP-10, FRONT-HTTP-11, FRONT-POST-11, SEC-40 to SEC-45.
 */
#include "jsonrpc/scan.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/write.h"

#define SCAN_METHOD_MAX 128
#define SCAN_QUOTED_NAME_MAX 64
#define MODERN "io.modelcontextprotocol/"

/* What is not a part of the envelope as it is handed out. */
struct scan_own {
	struct json jsonrpc;
	struct json id; /* not judged yet */
	struct json method;
};

/* Where a member's value goes: into the envelope, or into struct scan_own. */
struct known_member {
	struct slice name;
	bool is_own;
	size_t at;
	const struct known_object *inner; /* if its members are known too */
};

#define OF_ENVELOPE(name, member)                                           \
	{                                                                   \
		SLICE(name), false, offsetof(struct envelope, member), NULL \
	}
#define OBJECT(name, member, inner)                                             \
	{                                                                       \
		SLICE(name), false, offsetof(struct envelope, member), &(inner) \
	}
#define OWN(name, member)                                                  \
	{                                                                  \
		SLICE(name), true, offsetof(struct scan_own, member), NULL \
	}

struct known_object {
	const char *title; /* for error texts */
	enum { JUDGED_IF_STRICT, JUDGED, NOT_JUDGED } names;
	size_t count;
	size_t of_servers; /* the last ones: read of servers alone, so no client's name is like them */
	const struct known_member *members;
};

const struct scan_limits scan_limits_none = { .depth_max = SCAN_DEPTH_MAX, .id_max = SIZE_MAX };

static const struct known_member meta_members[] = {
	OF_ENVELOPE("progressToken", progress_token),
	OF_ENVELOPE(MODERN "protocolVersion", protocol_version),
	OF_ENVELOPE(MODERN "clientCapabilities", client_capabilities),
	OF_ENVELOPE(MODERN "clientInfo", client_info),
	OF_ENVELOPE(MODERN "logLevel", log_level),
	OF_ENVELOPE(SCAN_CALLER_META, asserted_caller),
};
static const struct known_object meta_object = {
	.title = "params._meta",
	.count = ARRAY_LEN(meta_members),
	.members = meta_members,
};

static const struct known_member params_members[] = {
	OF_ENVELOPE("name", name),
	OF_ENVELOPE("uri", uri),
	OF_ENVELOPE("arguments", arguments),
	OF_ENVELOPE("cursor", cursor),
	OF_ENVELOPE("task", task),
	OF_ENVELOPE("taskId", task_id),
	OF_ENVELOPE("progressToken", progress_of),
	OF_ENVELOPE("inputResponses", input_responses),
	OF_ENVELOPE("requestState", request_state),
	OBJECT("_meta", meta, meta_object),
	OF_ENVELOPE("progress", progress),
};
static const struct known_object params_object = {
	.title = "params",
	.of_servers = 1,
	.count = ARRAY_LEN(params_members),
	.members = params_members,
};

static const struct known_member result_meta_members[] = {
	OF_ENVELOPE(MODERN "serverInfo", server_info),
	OF_ENVELOPE(MODERN "related-task", related_task),
};
static const struct known_object result_meta_object = {
	.title = "result._meta",
	.names = NOT_JUDGED,
	.count = ARRAY_LEN(result_meta_members),
	.members = result_meta_members,
};

static const struct known_member result_members[] = {
	OF_ENVELOPE("isError", is_error),
	OF_ENVELOPE("task", made_task),
	OF_ENVELOPE("resultType", result_type),
	OF_ENVELOPE("ttlMs", ttl_ms),
	OF_ENVELOPE("cacheScope", cache_scope),
	OF_ENVELOPE("inputRequests", input_requests),
	OF_ENVELOPE("requestState", resumable_state),
	OBJECT("_meta", result_meta, result_meta_object),
};
#define RESULT_PLAIN 2 /* the first of them, which every revision knows */
static const struct known_object result_object = {
	.title = "result",
	.names = NOT_JUDGED,
	.count = ARRAY_LEN(result_members),
	.members = result_members,
};

static const struct known_member envelope_members[] = {
	OWN("jsonrpc", jsonrpc),
	OWN("id", id),
	OWN("method", method),
	OBJECT("params", params, params_object),
	OBJECT("result", result, result_object),
	OF_ENVELOPE("error", error),
};
static const struct known_object envelope_object = {
	.title = "the message",
	.names = JUDGED,
	.count = ARRAY_LEN(envelope_members),
	.members = envelope_members,
};

struct scan {
	struct grammar grammar;
	bool is_lenient;
	bool is_id_repeated;
	bool has_more_meta;
	bool is_odd_result;
	bool has_result_member; /* one that is known, beyond RESULT_PLAIN */
	bool has_other_members;
	bool may_be_plainer; /* for what is read under a known name */
	struct envelope *env;
	struct scan_own own;
	struct error fault; /* the first rule that a member name breaks */
};

/* ---- names ---- */

#define NAMES_FEW 64

/*
 * The names of one object's members, to tell whether one stands there twice. The first few are compared
 * one by one, but only if a name of the same kind (length, first and last byte, folded into 64 bits) was
 * met before. Beyond, they are collected and sorted at the end: that is never quadratic, however many a
 * peer sends, and needs no hash that a peer could aim at. FRONT-HTTP-11, SEC-44.
 */
struct names {
	struct slice *heap; /* all names, once there are more than NAMES_FEW */
	size_t count;
	size_t cap;    /* of heap */
	uint64_t seen; /* one bit for each kind of name among the few */
	struct slice few[NAMES_FEW];
};

static uint64_t names_kind(struct slice name)
{
	unsigned int sum = (unsigned int)name.n;

	if (name.n > 0)
		sum += (unsigned char)name.p[0] * 5u + (unsigned char)name.p[name.n - 1] * 3u;
	return UINT64_C(1) << (sum & 63);
}

/* Remembers a name (borrowed); true if it is a repetition that could be noticed at once. */
static bool names_add(struct names *names, struct slice name)
{
	uint64_t kind = names_kind(name);

	if (names->count < NAMES_FEW) {
		if ((names->seen & kind) != 0 &&
		    slices_has((struct slices){ names->few, names->count }, name))
			return true;
		names->seen |= kind;
		names->few[names->count++] = name;
		return false;
	}
	if (names->count >= names->cap) {
		names->cap = names->count * 2;
		names->heap = mem_resize(names->heap, names->cap * sizeof(*names->heap));
		if (names->count == NAMES_FEW)
			memcpy(names->heap, names->few, sizeof(names->few));
	}
	CHECK(names->count < names->cap);
	names->heap[names->count++] = name;
	return false;
}

static int names_compare(const void *a, const void *b)
{
	const struct slice *left = a;
	const struct slice *right = b;

	pause_point();
	if (left->n != right->n)
		return left->n < right->n ? -1 : 1;
	return left->n == 0 ? 0 : memcmp(left->p, right->p, left->n);
}

/* After the last one: finds the repetitions that names_add could not. Changes the order. */
static bool names_find_repeated(struct names *names, struct slice *name_r)
{
	if (names->heap == NULL)
		return false;
	CHECK(names->count > NAMES_FEW && names->count <= names->cap);
	qsort(names->heap, names->count, sizeof(*names->heap), names_compare);
	for (size_t i = 1; i < names->count; i++) {
		if (slice_is_equal(names->heap[i - 1], names->heap[i])) {
			*name_r = names->heap[i];
			return true;
		}
	}
	return false;
}

static struct slice scan_without_quotes(struct slice s)
{
	CHECK(s.n >= 2 && s.p[0] == '"');
	return slice_of(s.p + 1, s.n - 2);
}

/* A name for an error text: only if it cannot spoil a terminal or fill the text. */
static struct slice scan_printable_name(struct slice name)
{
	if (name.n > SCAN_QUOTED_NAME_MAX)
		return SLICE_LIT("(a long name)");
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] < 0x20 || name.p[i] > 0x7E)
			return SLICE_LIT("(a name beyond ASCII)");
	}
	return name;
}

static void scan_fault_repeated(struct scan *scan, const struct known_object *object,
				struct slice name)
{
	if (scan->fault.kind == ERROR_NONE)
		error_set(&scan->fault, ERROR_INVALID, "the member \"%.*s\" stands twice in %s",
			  SLICE_ARG(scan_printable_name(name)), object->title);
}

/*
 * Rules for names that are not known: what we read under a name, nobody behind us may read
 * otherwise.
 */
static void scan_check_name(struct scan *scan, const struct known_object *object,
			    const struct json *written, struct names *names)
{
	struct slice name = scan_without_quotes(written->text);

	if (scan->fault.kind != ERROR_NONE)
		return;
	if (written->has_escape)
		error_set(&scan->fault, ERROR_INVALID,
			  "a member name in %s is written with an escape", object->title);
	else if (names_add(names, name))
		scan_fault_repeated(scan, object, name);
	for (size_t i = 0; scan->fault.kind == ERROR_NONE && i < object->count - object->of_servers;
	     i++) {
		struct slice known = object->members[i].name;

		if (text_is_lookalike(name, known))
			error_set(&scan->fault, ERROR_INVALID,
				  "the member \"%.*s\" in %s differs from \"%.*s\" in letter case "
				  "only",
				  SLICE_ARG(scan_printable_name(name)), object->title,
				  SLICE_ARG(known));
	}
}

/* Whether a reader that ignores case takes it for a name that we read. SEC-41 */
static bool scan_resembles_known(const struct known_object *object, struct slice name)
{
	for (size_t i = 0; i < object->count; i++)
		if (text_is_lookalike(name, object->members[i].name))
			return true;
	return false;
}

static int scan_object(struct scan *scan, const struct known_object *object, struct json *value_r);

static struct json *scan_place(struct scan *scan, const struct known_member *known)
{
	char *base = known->is_own ? (char *)&scan->own : (char *)scan->env;

	return (struct json *)(void *)(base + known->at);
}

/* A member that nobody reads here. */
static int scan_other_member(struct scan *scan, const struct known_object *object,
			     const struct json *name, struct names *names)
{
	struct json ignored;

	if (object->names == NOT_JUDGED)
		scan->is_odd_result |=
			name->has_escape ||
			scan_resembles_known(object, scan_without_quotes(name->text));
	else if (object->names == JUDGED || !scan->is_lenient)
		scan_check_name(scan, object, name, names);
	scan->has_more_meta |= object == &meta_object;
	scan->has_other_members |= object == &envelope_object;
	return grammar_value(&scan->grammar, &ignored);
}

/* A known one that stands there already: the first counts, where that is not a fault. */
static int scan_repeated_member(struct scan *scan, const struct known_object *object,
				const struct known_member *known)
{
	struct json ignored;

	if (object->names == JUDGED || (object->names == JUDGED_IF_STRICT && !scan->is_lenient))
		scan_fault_repeated(scan, object, known->name);
	scan->is_odd_result |= object->names == NOT_JUDGED;
	scan->is_id_repeated |= scan_place(scan, known) == &scan->own.id;
	return grammar_value(&scan->grammar, &ignored);
}

static int scan_object_member(struct scan *scan, const struct known_object *object,
			      struct names *names)
{
	const struct known_member *known = object->members;
	const struct known_member *end = known + object->count;
	struct json name;
	struct json *value_r;
	struct slice plain;

	pause_point();
	if (grammar_name(&scan->grammar, &name) < 0)
		return -1;
	plain = scan_without_quotes(name.text);
	while (known < end && !slice_is_equal(known->name, plain))
		known++;
	if (known == end)
		return scan_other_member(scan, object, &name, names);
	value_r = scan_place(scan, known);
	if (value_r->type != JSON_ABSENT)
		return scan_repeated_member(scan, object, known);
	scan->has_result_member |=
		object == &result_object && known >= result_members + RESULT_PLAIN;
	if ((known->inner != NULL ? scan_object(scan, known->inner, value_r) :
				    grammar_value(&scan->grammar, value_r)) < 0)
		return -1;
	scan->may_be_plainer |= value_r->has_escape | (value_r->type == JSON_ARRAY);
	return 0;
}

/* Any value; if it is an object, its known members are found. Calls itself along the table only. */
static int scan_object(struct scan *scan, const struct known_object *object, struct json *value_r)
{
	struct grammar *grammar = &scan->grammar;
	const char *begin = grammar->p;
	enum grammar_step step;
	struct slice repeated;
	struct names names;

	if (begin == grammar->end || *begin != '{')
		return grammar_value(grammar, value_r);
	/* The few need not be empty. */
	names.heap = NULL;
	names.count = names.cap = 0;
	names.seen = 0;
	step = grammar_open(grammar);
	while (step == GRAMMAR_MEMBER) {
		step = GRAMMAR_FAILED;
		if (scan_object_member(scan, object, &names) == 0)
			step = grammar_next(grammar);
	}
	if (step == GRAMMAR_CLOSED && names_find_repeated(&names, &repeated))
		scan_fault_repeated(scan, object, repeated);
	free(names.heap);
	CHECK(grammar->p > begin || step == GRAMMAR_FAILED);
	*value_r = (struct json){ JSON_OBJECT, false, slice_between(begin, grammar->p) };
	return step == GRAMMAR_CLOSED ? 0 : -1;
}

/* ---- the text ---- */

/* Reads the whole text. On failure err says what is wrong with it as JSON. */
static int scan_text(struct scan *scan, struct slice text, struct slice all, struct error *err)
{
	struct grammar *grammar = &scan->grammar;
	struct json whole;
	int rc = scan_object(scan, &envelope_object, &whole);

	if (rc == 0 && grammar->p == grammar->end)
		return 0;
	if (rc == 0)
		grammar->fault_text = "more text after the end of the message";
	if (grammar->fault == ERROR_LIMIT)
		return error_set(err, ERROR_LIMIT, "the message is nested deeper than %zu levels",
				 grammar->depth_max);
	if (slice_has_prefix(text, SLICE_LIT("\xEF\xBB\xBF")))
		return error_set(err, ERROR_SYNTAX, "not JSON: it begins with a byte order mark");
	return error_set(err, ERROR_SYNTAX, "not JSON: %s, at byte %zu", grammar->fault_text,
			 (size_t)(grammar->p - all.p));
}

/* An integer with a fraction or an exponent is only legal where it is ours: in an answer. */
static bool scan_is_integer(const struct scan *scan, bool *is_fraction_r)
{
	const struct json *id = &scan->own.id;
	bool may_be_integral = scan->is_lenient || scan->own.method.type == JSON_ABSENT;
	bool has_fraction = false;
	long long number;

	*is_fraction_r = false;
	if (scan_int(*id, &number) == 0)
		return true;
	for (size_t i = 0; i < id->text.n; i++)
		has_fraction |= id->text.p[i] == '.' || (id->text.p[i] | 0x20) == 'e';
	if (has_fraction && may_be_integral && value_read_integer(*id, &number) == 0)
		return true;
	*is_fraction_r = has_fraction;
	return false;
}

/* *id_r is the id if it is a legal one, else absent. */
static int scan_judge_id(const struct scan *scan, size_t id_max, struct json *id_r,
			 struct error *err)
{
	const struct json *id = &scan->own.id;
	bool is_fraction = false;
	bool is_integer = id->type == JSON_NUMBER && scan_is_integer(scan, &is_fraction);

	*id_r = (struct json){ .type = JSON_ABSENT };
	if (scan->is_id_repeated)
		return error_set(err, ERROR_INVALID,
				 "the member \"id\" stands twice in the message");
	if (id->type == JSON_ABSENT)
		return 0;
	if (scan->is_lenient && (id->type == JSON_NULL || is_fraction))
		return 0;
	if (is_fraction || (id->type != JSON_STRING && id->type != JSON_NUMBER))
		return error_set(err, ERROR_INVALID, "the id is neither a string nor an integer");
	if (id->text.n > id_max)
		return error_set(err, ERROR_LIMIT, "the id is longer than %zu bytes", id_max);
	if (id->type == JSON_NUMBER && !is_integer)
		return error_set(err, ERROR_INVALID, "the id is an integer of more than 64 bits");
	*id_r = *id;
	return 0;
}

static int scan_judge_version(const struct scan *scan, struct error *err)
{
	const struct json *version = &scan->own.jsonrpc;

	if (version->type == JSON_ABSENT)
		return scan->is_lenient ?
			       0 :
			       error_set(err, ERROR_INVALID, "the member \"jsonrpc\" is missing");
	if (!slice_is_equal(version->text, SLICE_LIT("\"2.0\"")))
		return error_set(err, ERROR_INVALID, "the member \"jsonrpc\" is not \"2.0\"");
	return 0;
}

static int scan_judge_call(const struct scan *scan, struct envelope *env_r, struct error *err)
{
	const struct json *method = &scan->own.method;
	enum json_type params = env_r->params.type;

	if (env_r->result.type != JSON_ABSENT || env_r->error.type != JSON_ABSENT)
		return error_set(err, ERROR_INVALID, "a result or error stands beside a method");
	if (method->type != JSON_STRING)
		return error_set(err, ERROR_INVALID, "the method is not a string");
	if (method->has_escape)
		return error_set(err, ERROR_INVALID, "the method is written with an escape");
	env_r->method = scan_without_quotes(method->text);
	if (env_r->method.n > SCAN_METHOD_MAX)
		return error_set(err, ERROR_INVALID, "the method is longer than %d bytes",
				 SCAN_METHOD_MAX);
	if (params != JSON_ABSENT && params != JSON_OBJECT && params != JSON_ARRAY)
		return error_set(err, ERROR_INVALID, "params is neither an object nor an array");
	env_r->kind = env_r->id.type == JSON_ABSENT ? ENVELOPE_NOTIFICATION : ENVELOPE_REQUEST;
	return 0;
}

static int scan_judge_response(const struct scan *scan, struct envelope *env_r, struct error *err)
{
	bool has_result = env_r->result.type != JSON_ABSENT;
	struct slice error = env_r->error.text;
	struct json code;
	long long number;

	if (has_result == (env_r->error.type != JSON_ABSENT))
		return error_set(err, ERROR_INVALID,
				 has_result ? "both a result and an error" :
					      "neither a method nor a result nor an error");
	env_r->kind = has_result ? ENVELOPE_RESULT : ENVELOPE_ERROR;
	if (has_result && env_r->id.type == JSON_ABSENT)
		return error_set(err, ERROR_INVALID, "a result without an id");
	if (has_result)
		return 0;
	code = scan_member(error, SLICE_LIT("code"));
	if ((scan->is_lenient ? value_read_integer(code, &number) : scan_int(code, &number)) < 0 ||
	    scan_member(error, SLICE_LIT("message")).type != JSON_STRING)
		return error_set(err, ERROR_INVALID,
				 "the error is not an object with an integer code and a message");
	return 0;
}

static bool scan_is_empty(const struct json *value)
{
	return value->type == JSON_NULL ||
	       (value->type == JSON_STRING && slice_is_equal(value->text, SLICE_LIT("\"\"")));
}

/* Members that some servers write although they have nothing to say. */
static void scan_drop_empty(struct scan *scan, struct envelope *env_r)
{
	struct json *result = &env_r->result, *error = &env_r->error, *method = &scan->own.method;
	struct json *dropped[4];
	size_t count = 0;

	/* Nearly all have nothing to drop. */
	if ((result->type != JSON_ABSENT) + (error->type != JSON_ABSENT) +
			    (method->type != JSON_ABSENT) ==
		    1 &&
	    env_r->params.type != JSON_NULL)
		return;
	if (method->type != JSON_ABSENT && !scan_is_empty(method)) {
		dropped[count++] = result->type == JSON_NULL ? result : NULL;
		dropped[count++] = error->type == JSON_NULL ? error : NULL;
	} else if (result->type != JSON_ABSENT || error->type != JSON_ABSENT) {
		dropped[count++] = method->type != JSON_ABSENT ? method : NULL;
		if (error->type == JSON_NULL && result->type != JSON_ABSENT)
			dropped[count++] = error;
		else if (result->type == JSON_NULL && error->type != JSON_ABSENT)
			dropped[count++] = result;
	}
	dropped[count++] = env_r->params.type == JSON_NULL ? &env_r->params : NULL;
	for (size_t i = 0; i < count; i++) {
		if (dropped[i] == NULL)
			continue;
		dropped[i]->type = JSON_ABSENT;
		env_r->is_unusual = true;
	}
}

static void scan_fill(struct scan *scan, struct slice text, struct envelope *env_r)
{
	CHECK(scan->fault.kind == ERROR_NONE && env_r->text.p == NULL);
	env_r->text = text;
	env_r->has_more_meta = scan->has_more_meta;
	env_r->is_odd_result = scan->is_odd_result;
	env_r->is_plain_result = env_r->result.type == JSON_OBJECT && !scan->is_odd_result &&
				 !scan->has_result_member;
	env_r->has_line_break = scan->grammar.has_line_break;
	env_r->has_separator = scan->grammar.has_separator;
	env_r->has_other_members = scan->has_other_members;
	env_r->lacks_version = scan->own.jsonrpc.type == JSON_ABSENT;
	env_r->is_unusual = env_r->lacks_version ||
			    (env_r->id.type == JSON_ABSENT && scan->own.id.type != JSON_ABSENT);
	if (scan->is_lenient)
		scan_drop_empty(scan, env_r);
}

/* As scan_envelope; on failure env_r may hold something. */
static int scan_whole(struct slice text, const struct scan_limits *limits, unsigned int flags,
		      struct envelope *env_r, struct error *err)
{
	struct slice all = text;
	struct scan scan;

	text = grammar_trim(text);
	/* What is large in it (the open containers, the text of the fault) need not be empty. */
	scan.is_lenient = (flags & SCAN_LENIENT) != 0;
	scan.is_id_repeated = scan.has_more_meta = false;
	scan.is_odd_result = scan.has_result_member = false;
	scan.has_other_members = scan.may_be_plainer = false;
	scan.fault.kind = ERROR_NONE;
	scan.env = env_r;
	scan.own = (struct scan_own){ .id = { .type = JSON_ABSENT } };
	grammar_init(&scan.grammar, text, limits->depth_max);
	if (scan_text(&scan, text, all, err) < 0) {
		/* What is not JSON has no id that could be trusted (FRONT-HTTP-10). */
		if (scan.grammar.fault == ERROR_LIMIT)
			(void)scan_judge_id(&scan, limits->id_max, &env_r->id, NULL);
		return -1;
	}
	env_r->may_be_plainer = scan.may_be_plainer || scan.grammar.has_escaped_name;
	if (*text.p != '{')
		return error_set(err, ERROR_INVALID, "the message is not a JSON object");
	if (scan_judge_id(&scan, limits->id_max, &env_r->id, err) < 0)
		return -1;
	if (scan.fault.kind != ERROR_NONE)
		return error_set(err, scan.fault.kind, "%s", scan.fault.text);
	if (scan_judge_version(&scan, err) < 0)
		return -1;
	/* It is kept for as long as the call runs. */
	if (env_r->progress_token.text.n > limits->id_max)
		return error_set(err, ERROR_LIMIT, "the progress token is longer than %zu bytes",
				 limits->id_max);
	scan_fill(&scan, text, env_r);
	if (scan.own.method.type != JSON_ABSENT)
		return scan_judge_call(&scan, env_r, err);
	return scan_judge_response(&scan, env_r, err);
}

int scan_envelope(struct slice text, const struct scan_limits *limits, unsigned int flags,
		  struct envelope *env_r, struct error *err)
{
	struct envelope kept;
	size_t size = sizeof(*env_r);

	__asm__("" : "+r"(size)); /* or the compiler writes word by word what memset does at once */
	memset(env_r, 0, size);
	if (scan_whole(text, limits, flags, env_r, err) == 0)
		return 0;
	kept = (struct envelope){ .id = env_r->id, .may_be_plainer = env_r->may_be_plainer };
	*env_r = kept; /* nothing else of it counts */
	return -1;
}

/* ---- plain ---- */

/*
 * Most messages are plain: the scan tells which may not be, and only these are written anew. First the
 * names and the method, because the scan may not have found what it reads under other spellings; then,
 * with its findings, the strings and empty arrays.
 *
 * Invariant: the meaning of the text does not change, apart from the empty arrays.
 */

#define READ_MAX 16
#define CAPABILITIES_DEPTH 2 /* of a declared capability's own members */

struct rewrite {
	struct buf *out;
	const char *copied;           /* what stands before it has been written */
	const char *end;              /* of the text */
	struct json read[READ_MAX];   /* the strings that are read */
	struct json object[READ_MAX]; /* what is read as an object */
	size_t read_count;
	size_t object_count;
	struct slice capabilities;
	size_t base;    /* the depth of `capabilities` */
	bool is_open;   /* below one that anybody may define: only its own form is known */
	bool is_method; /* the value that comes next */
	bool is_changed;
};

static void scan_put(struct rewrite *rewrite, struct slice span, struct slice with)
{
	CHECK(span.p >= rewrite->copied && span.p + span.n <= rewrite->end);
	if (slice_is_equal(span, with))
		return;
	buf_append_slice(rewrite->out, slice_between(rewrite->copied, span.p));
	buf_append_slice(rewrite->out, with);
	rewrite->copied = span.p + span.n;
	rewrite->is_changed = true;
}

/*
 * Half a surrogate pair has no other spelling. Names that are read are ASCII: others stay as they
 * are.
 */
static void put_plain_string(struct rewrite *rewrite, struct json string, bool is_name)
{
	at_end(buf_fini) struct buf decoded = { 0 }, written = { 0 };
	struct slice text;

	if (scan_decode_string(string, &decoded) == 0) {
		text = buf_slice(&decoded);
		write_string(&written, text);
		if (!is_name || text_verbatim_length(text) == text.n)
			scan_put(rewrite, string.text, buf_slice(&written));
	}
}

/* Whether the value of this member is the method of the message. */
static bool is_of_method(const struct scan_token *name)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice text;

	return name->depth == 1 && scan_read_string(name->value, &room, &text) == 0 &&
	       slice_is_equal(text, SLICE_LIT("method"));
}

static bool scan_is_among(const struct json *values, size_t count, const char *at)
{
	CHECK(count <= READ_MAX && at != NULL);
	for (size_t i = 0; i < count; i++) {
		if (values[i].type != JSON_ABSENT && values[i].text.p == at)
			return true;
	}
	return false;
}

static bool scan_is_within(struct slice outer, const char *at)
{
	return outer.n > 0 && at >= outer.p && at < outer.p + outer.n;
}

/* Notes whether what follows are the settings of an extension, whose arrays are its own. */
static void note_capability(struct rewrite *rewrite, const struct scan_token *token)
{
	struct slice name = scan_plain_string(token->value);

	if (!scan_is_within(rewrite->capabilities, token->value.text.p))
		return;
	if (rewrite->base == 0)
		rewrite->base = token->depth;
	if (token->depth == rewrite->base)
		rewrite->is_open = slice_is_equal(name, SLICE_LIT("extensions")) ||
				   slice_is_equal(name, SLICE_LIT("experimental"));
}

static bool scan_is_object(const struct rewrite *rewrite, const struct scan_token *token)
{
	const char *at = token->value.text.p;

	if (scan_is_among(rewrite->object, rewrite->object_count, at))
		return true;
	return scan_is_within(rewrite->capabilities, at) &&
	       (rewrite->base == 0 || !rewrite->is_open ||
		token->depth < rewrite->base + CAPABILITIES_DEPTH);
}

static bool is_empty_array(const char *at, const char *end)
{
	CHECK(at < end);
	if (*at++ != '[')
		return false;
	while (at < end && strchr(" \t\r\n", *at) != NULL)
		at++;
	return at < end && *at == ']';
}

static int rewrite_token(const struct scan_token *token, void *arg)
{
	struct rewrite *rewrite = arg;
	const char *at = token->value.text.p;

	if (token->kind == SCAN_NAME) {
		note_capability(rewrite, token);
		rewrite->is_method = is_of_method(token);
		if (token->value.has_escape)
			put_plain_string(rewrite, token->value, true);
	} else if (token->kind == SCAN_STRING) {
		if (token->value.has_escape &&
		    (rewrite->is_method || scan_is_among(rewrite->read, rewrite->read_count, at)))
			put_plain_string(rewrite, token->value, false);
	} else if (is_empty_array(at, rewrite->end) && scan_is_object(rewrite, token)) {
		scan_put(rewrite,
			 slice_between(at, memchr(at, ']', (size_t)(rewrite->end - at)) + 1),
			 SLICE_LIT("{}"));
	}
	return 0;
}

/* Rewrites *text_r into room, which may hold it; returns whether anything was to be rewritten. */
static bool rewrite_text(struct rewrite *rewrite, struct slice *text_r, struct buf *room)
{
	struct buf out = { 0 };

	CHECK(text_r->n > 0 && rewrite->out == NULL && !rewrite->is_changed);
	rewrite->out = &out;
	rewrite->copied = text_r->p;
	rewrite->end = text_r->p + text_r->n;
	scan_tokens(*text_r, rewrite_token, rewrite);
	if (!rewrite->is_changed) {
		buf_fini(&out);
		return false;
	}
	buf_append_slice(&out, slice_between(rewrite->copied, rewrite->end));
	buf_fini(room);
	*room = out;
	*text_r = buf_slice(room);
	return true;
}

static bool rewrite_names(struct slice *text_r, struct buf *room)
{
	struct rewrite rewrite = { .out = NULL };

	return rewrite_text(&rewrite, text_r, room);
}

static struct slice capabilities_of(const struct envelope *env, unsigned int plain_flags)
{
	static const struct slice name = SLICE("capabilities");

	if (env->client_capabilities.type != JSON_ABSENT)
		return env->client_capabilities.text;
	if (slice_is_equal(env->method, SLICE_LIT("initialize")))
		return scan_member(env->params.text, name).text;
	return (plain_flags & PLAIN_HANDSHAKE) != 0 ? scan_member(env->result.text, name).text :
						      slice_of(NULL, 0);
}

static bool rewrite_values(const struct envelope *env, struct slice capabilities,
			   struct slice *text_r, struct buf *room)
{
	struct rewrite rewrite = {
		.read = { env->name, env->uri, env->cursor, env->task_id, env->request_state,
			  env->protocol_version, env->log_level, env->result_type, env->cache_scope,
			  env->resumable_state },
		.read_count = 10,
		.object = { env->params, env->arguments, env->meta, env->result, env->result_meta },
		.object_count = 5,
		.capabilities = capabilities,
	};

	return rewrite_text(&rewrite, text_r, room);
}

int plain_scan(struct slice text, const struct scan_limits *limits, unsigned int scan_flags,
	       unsigned int plain_flags, struct buf *room, struct envelope *env_r,
	       struct error *err)
{
	int result = scan_envelope(text, limits, scan_flags, env_r, err);
	struct slice capabilities;

	if (env_r->may_be_plainer && rewrite_names(&text, room))
		result = scan_envelope(text, limits, scan_flags, env_r, err);
	if (result < 0)
		return result;
	capabilities = capabilities_of(env_r, plain_flags);
	if ((env_r->may_be_plainer ||
	     (capabilities.n > 0 && memchr(capabilities.p, '[', capabilities.n) != NULL)) &&
	    rewrite_values(env_r, capabilities, &text, room))
		result = scan_envelope(text, limits, scan_flags, env_r, err);
	return result;
}
