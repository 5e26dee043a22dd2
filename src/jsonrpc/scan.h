/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses one JSON-RPC message without building a tree: validates the whole text (RFC 8259), finds the
 * members that the gateway needs, as slices of it. One pass, iterative, normally without allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum json_type {
	JSON_ABSENT = 0,
	JSON_NULL,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

/* The value of a member as written: a string with its quotes and escapes. */
struct json {
	enum json_type type;
	bool has_escape; /* strings: contains a backslash */
	struct slice text;
};

enum envelope_kind {
	ENVELOPE_REQUEST,      /* method and id */
	ENVELOPE_NOTIFICATION, /* method, no id */
	ENVELOPE_RESULT,       /* id and result */
	ENVELOPE_ERROR,        /* error; id unless the peer could not determine it */
};

#define ENVELOPE_MEMBERS 31
/* Of _meta: who is calling, as the gateway says it. Nobody else may. BACK-MSG-09 */
#define SCAN_CALLER_META "io.mcpgated/caller"

/* What canonical.h makes of a value, if somebody has made it already; empty: nobody has. */
struct canonical_form {
	struct slice text;
	const char *flaw; /* why it has no single meaning; NULL: it has one */
};

struct envelope {
	enum envelope_kind kind;
	struct slice text;   /* the message without surrounding white space */
	struct slice method; /* without quotes; never contains an escape */
	union {
		struct {
			struct json id; /* an integer or a string; absent in notifications */
			struct json params;
			struct json result;
			struct json error;
			/* direct members of params, when params is an object */
			struct json name;
			struct json uri;
			struct json arguments;
			struct json cursor;
			struct json task;
			struct json task_id;     /* taskId */
			struct json progress_of; /* progressToken */
			struct json progress;
			struct json input_responses; /* inputResponses */
			struct json request_state;   /* requestState */
			struct json meta;            /* _meta */
			/* direct members of params._meta, when it is an object */
			struct json progress_token;      /* progressToken */
			struct json protocol_version;    /* io.modelcontextprotocol/… */
			struct json client_capabilities; /* io.modelcontextprotocol/… */
			struct json client_info;
			struct json log_level;
			struct json asserted_caller; /* SCAN_CALLER_META */
			/* direct members of result, when it is an object; of repeated ones the first */
			struct json is_error;        /* isError */
			struct json made_task;       /* task */
			struct json result_type;     /* resultType */
			struct json ttl_ms;          /* ttlMs */
			struct json cache_scope;     /* cacheScope */
			struct json input_requests;  /* inputRequests */
			struct json resumable_state; /* requestState */
			struct json result_meta;     /* _meta */
			/* direct members of result._meta, when it is an object */
			struct json server_info;  /* io.modelcontextprotocol/serverInfo */
			struct json related_task; /* io.modelcontextprotocol/related-task */
		};
		struct json members[ENVELOPE_MEMBERS]; /* all of these */
	};
	bool has_more_meta; /* params._meta has other members */
	/* In result or result._meta, one of these names is repeated or a name has an escape. */
	bool is_odd_result;
	/* The result is an object, has none of them but isError and task, and is not odd. */
	bool is_plain_result;
	bool has_line_break; /* raw CR or LF between tokens: must not reach a line or an event */
	/* SCAN_LENIENT tolerated something: rewrite the message before forwarding */
	bool is_unusual;
	bool lacks_version, has_other_members; /* no "jsonrpc"; some that it does not know */
	bool may_be_plainer; /* in its spelling (plain_scan); set after a failure, too */
	bool has_separator;  /* raw U+0085, U+2028 or U+2029 in a string */
	/* Of the arguments; not set by a scan, but copied with the message (msg_new_scanned). */
	struct canonical_form canonical;
};

enum scan_flags {
	/*
	 * For messages of children: "jsonrpc" may be missing; an id of null or a fraction, params
	 * of null, and members that are empty beside those that say what the message is, are read
	 * as absent; repeated, escaped or look-alike names are rejected in the envelope only.
	 */
	SCAN_LENIENT = 1,
};

struct scan_limits {
	/* nested arrays and objects, including the outermost; at most SCAN_DEPTH_MAX */
	size_t depth_max;
	size_t id_max; /* bytes of an id or a progress token, including quotes */
};
#define SCAN_DEPTH_MAX 1032 /* the highest limits.json_depth, and what rewriting adds */
extern const struct scan_limits scan_limits_none; /* for what was accepted before, or is ours */

/*
 * Finds the envelope of one JSON-RPC message.
 *
 * text    one JSON value with optional white space around it; borrowed, not changed
 * env_r   slices into text, valid as long as text is. On failure, `id` is the message's id if one
 *         of a legal type was found, for the error; all else but may_be_plainer is undefined
 * err     on failure, a text that may be shown to the peer, and the kind:
 *           ERROR_SYNTAX   not JSON or not UTF-8             (JSON-RPC code -32700)
 *           ERROR_INVALID  JSON, but not one valid message   (-32600)
 *           ERROR_LIMIT    too deep, id too long             (-32600)
 *
 * Rejected as ERROR_INVALID, unless SCAN_LENIENT says otherwise: "jsonrpc" missing or not "2.0"; an
 * id that is neither a string nor a 64-bit integer (with a fraction or exponent only in a response:
 * it is ours); both or neither of result and error next to an id without method; result or error
 * next to a method; params that is neither object nor array; error that is not an object with an
 * integer code and a string message; a member name repeated or written with an escape in the
 * envelope, params or params._meta (readers would differ); a method written with escapes or longer
 * than 128 bytes; a name that differs only in letter case (by Unicode folding) from one that is
 * read there. A result without an id is rejected even with SCAN_LENIENT. A lone surrogate in a
 * string passes.
 *
 * Returns 0, or -1. JSON-RPC 2.0 §4, §5; RPC-01, FRONT-HTTP-10, -11, FRONT-POST-11, SEC-40 to -45.
 */
int scan_envelope(struct slice text, const struct scan_limits *limits, unsigned int flags,
		  struct envelope *env_r, struct error *err) must_check;

/*
 * Splits a JSON array into its elements, for batches. Calls `on_element` with the text of each
 * element, in order; it returns 0 to continue or -1 to stop. Before the first call, the grammar of
 * the array itself is checked and the brackets of its elements are matched; the content of the
 * elements is left to scan_envelope.
 *
 * Returns the number of elements, or -1: not an array, wrong grammar, more than max_elements
 * (ERROR_LIMIT), or stopped by on_element (err unchanged).
 */
typedef int scan_element_fn(struct slice element, void *arg);
int scan_array(struct slice text, size_t max_elements, scan_element_fn *on_element, void *arg,
	       struct error *err) must_check;

/* The type by the first byte after white space; JSON_ABSENT if no value begins with it. */
enum json_type scan_type(struct slice text);
/* The value with this text, which begins and ends with it: what scan_array passes, for example. */
struct json scan_value(struct slice text);

/*
 * Looks up a direct member of an object that was scanned as valid. Names are compared by bytes; a
 * name written with escapes never matches. The first match counts. Type JSON_ABSENT: there is none,
 * or `object` is not an object.
 */
struct json scan_member(struct slice object, struct slice name);
/* Like scan_member, along a path, e.g. {"capabilities", "elicitation"}. */
struct json scan_path(struct slice object, const char *const *path, size_t length);

/* Reads an integer that fits. Returns 0, or -1 for anything else. */
int scan_int(struct json value, long long *number_r) must_check;
/* The bytes between the quotes of a string without escapes; otherwise {NULL, 0}. */
struct slice scan_plain_string(struct json value);

/*
 * Appends the decoded string as UTF-8. Returns 0, or -1 if value is not a string or has a lone
 * surrogate, which has no UTF-8 form. RFC 8259 §7.
 */
int scan_decode_string(struct json value, struct buf *out) must_check;
/*
 * Like scan_decode_string, but does not copy a string without escapes: *text_r is the text between
 * the quotes, or else lies in `room`, which is overwritten. On -1, *text_r is empty.
 */
int scan_read_string(struct json value, struct buf *room, struct slice *text_r) must_check;

/* The members of an object that was scanned as valid, in order. */
struct scan_cursor {
	const char *p, *end; /* what is left */
	struct slice name;   /* of the one just found: without quotes, escapes not decoded */
	struct json value;
};
struct scan_cursor scan_open(struct slice object);
/* False: there are no more. */
bool scan_next_member(struct scan_cursor *cursor);
#define SCAN_MEMBERS(member, object) \
	for (struct scan_cursor member = scan_open(object); scan_next_member(&member);)

/* Calls on_member for each. It returns 0 to continue, -1 to stop. */
typedef int scan_member_fn(struct slice name, struct json value, void *arg);
void scan_members(struct slice object, scan_member_fn *on_member, void *arg);
/* The same, between the braces of an object that is appended to `out`: of what on_member appends. */
void scan_members_into(struct buf *out, struct slice object, scan_member_fn *on_member, void *arg);
/* As scan_read_string, of such a name. */
int scan_read_name(struct slice name, struct buf *room, struct slice *name_r) must_check;

/* The argument of on_token. Members and elements are one level deeper than their container. */
enum scan_token_kind {
	SCAN_CONTAINER, /* an object or array begins */
	SCAN_NAME,      /* the name of a member */
	SCAN_STRING,
};
struct scan_token {
	enum scan_token_kind kind;
	size_t depth;      /* 0 for the value itself */
	struct json value; /* for a container, its type, and its opening bracket as text */
};

/*
 * Walks through a value that was scanned as valid, with all nested values, in order: calls on_token for
 * each container, name and string; 0: continue, -1: stop. Takes linear time at any depth.
 */
typedef int scan_token_fn(const struct scan_token *token, void *arg);
void scan_tokens(struct slice value, scan_token_fn *on_token, void *arg);

/* ---- plain ---- */

/*
 * One meaning, one reading: JSON has many spellings for a text, and some libraries write an empty
 * object as an array. What the gateway reads of a message is brought to one spelling where the
 * message comes in, from clients as from servers, so that all other code may compare bytes.
 */

enum plain_flags {
	PLAIN_HANDSHAKE = 1, /* it may be the response to a handshake, with capabilities */
};

/*
 * As scan_envelope, but reads the message in its plain spelling:
 *
 *   - names in ASCII, the method and the strings that the envelope hands out are written without
 *     escapes that need not be (as `\/` in PHP's default); others, ids among them, stay as they are
 *   - `[]` is written as `{}` where MCP has an object: params, arguments, _meta, result,
 *     capabilities and what is declared in them
 *
 * scan_flags  for scan_envelope
 * room        if the message had another spelling, its plain one is here, and the slices of env_r
 *             point into it; else it is not touched. The caller frees it after env_r
 *
 * RFC 8259 §7; RPC-08.
 */
int plain_scan(struct slice text, const struct scan_limits *limits, unsigned int scan_flags,
	       unsigned int plain_flags, struct buf *room, struct envelope *env_r,
	       struct error *err) must_check;

/* ---- numbers and ids by their value ---- */

/*
 * However they are written: some readers know floating-point numbers only, and some peers hand back
 * a number as a string. BACK-FRAME-05
 */

/* As scan_int, for every way to write an integer: 1.0, 1e0, 10E-1. */
int value_read_integer(struct json value, long long *number_r) must_check;
/*
 * One of our own ids, which are positive numbers, as a peer hands it back: as any spelling of the
 * number, or as a string of its digits. 0: it is none.
 */
uint64_t value_own_id(struct json value);
/* Whether two values, scanned as valid, are the same id. Strings and numbers never are. */
bool value_is_same_id(struct slice left, struct slice right);
