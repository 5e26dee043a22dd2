/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one JSON-RPC message without building a tree: checks the whole text against RFC 8259 and
 * finds the members that the gateway needs, as slices of the text. One pass, iterative, no
 * allocation in the usual case.
 */
#ifndef MCPGATED_JSONRPC_SCAN_H
#define MCPGATED_JSONRPC_SCAN_H

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

/* The value of a member, as it was written: a string with its quotes and escapes. */
struct json {
	enum json_type type;
	bool has_escape; /* strings: contains a backslash */
	struct slice text;
};

enum envelope_kind {
	ENVELOPE_REQUEST,      /* method and id */
	ENVELOPE_NOTIFICATION, /* method, no id */
	ENVELOPE_RESULT,       /* id and result */
	ENVELOPE_ERROR,        /* error; id unless the peer could not tell */
};

struct envelope {
	enum envelope_kind kind;
	struct slice text;   /* the message, without white space around it */
	struct slice method; /* without quotes; never contains an escape */
	struct json id;      /* JSON_NUMBER (an integer) or JSON_STRING; absent in notifications */
	struct json params;
	struct json result;
	struct json error;
	/* direct members of params, when params is an object */
	struct json name;
	struct json uri;
	struct json arguments;
	struct json cursor;
	struct json task;
	struct json task_id;         /* taskId */
	struct json progress_of;     /* progressToken */
	struct json input_responses; /* inputResponses */
	struct json request_state;   /* requestState */
	struct json meta;            /* _meta */
	/* direct members of params._meta, when it is an object */
	struct json progress_token;      /* progressToken */
	struct json protocol_version;    /* io.modelcontextprotocol/protocolVersion */
	struct json client_capabilities; /* io.modelcontextprotocol/clientCapabilities */
	struct json client_info;         /* io.modelcontextprotocol/clientInfo */
	struct json log_level;           /* io.modelcontextprotocol/logLevel */
	bool has_more_meta;              /* others */
	/*
	 * The result is an object that says nothing of itself, as results of 2026-07-28 do: no member is named resultType,
	 * ttlMs, cacheScope, inputRequests, requestState or _meta, or has a name with an escape.
	 */
	bool is_plain_result;
	bool has_line_break; /* a raw CR or LF stands between tokens: must not reach a line or an event */
	bool is_unusual;    /* SCAN_LENIENT overlooked something: write it anew before it goes on */
	bool has_separator; /* a raw U+0085, U+2028 or U+2029 stands in a string */
};

enum scan_flags {
	/*
	 * What children send: "jsonrpc" may be missing, an id of null or a fraction, params of null,
	 * and an error of null beside a result are read as absent,
	 * and repeated, escaped or look-alike names are refused in the envelope only.
	 */
	SCAN_LENIENT = 1,
};

struct scan_limits {
	size_t depth_max; /* nested arrays and objects, the outermost counted; at most SCAN_DEPTH_MAX */
	size_t id_max; /* bytes of an id or a progress token, quotes counted */
};
#define SCAN_DEPTH_MAX 1024

/*
 * Finds the envelope of one JSON-RPC message.
 *
 * text    one JSON value and white space around it; borrowed, not changed
 * env_r   slices into text, valid as long as text is. On failure `id` holds the message's id if one
 *         of a legal type could be found, so that the error can name it; all else is undefined
 * err     on failure a text that may be shown to the peer, and the kind:
 *           ERROR_SYNTAX   not JSON or not UTF-8             (JSON-RPC code -32700)
 *           ERROR_INVALID  JSON, but not one valid message   (-32600)
 *           ERROR_LIMIT    too deep, id too long             (-32600)
 *
 * Refused as ERROR_INVALID, unless SCAN_LENIENT says otherwise: "jsonrpc" other than "2.0" or
 * missing; an id that is not a string or an integer of 64 bits (a number with a fraction or an
 * exponent is none); both or neither of result and error next to an id without method; result or error
 * beside a method; params that is neither object nor array; error that is not an object with an
 * integer code and a string message; a member name repeated or written with an escape in the
 * envelope, in params or in params._meta (policy would read one, the child the other); a method
 * written with escapes or longer than 128 bytes; a name equal but for letter case (as Unicode folds
 * it) to one that is read there: of the envelope's members, params' and params._meta's that are named
 * above. A result without an id is refused even
 * with SCAN_LENIENT. A lone surrogate escape inside a string is legal and passes.
 *
 * Returns 0, or -1. JSON-RPC 2.0 §4, §5; RPC-01, FRONT-HTTP-10, FRONT-HTTP-11, FRONT-POST-11,
 * SEC-40 to SEC-45.
 */
int scan_envelope(struct slice text, const struct scan_limits *limits, unsigned int flags,
		  struct envelope *env_r, struct error *err) must_check;

/*
 * Splits a JSON array into its elements, for batches. Calls `on_element` with each element's text,
 * in order; it returns 0 to go on or -1 to stop. The elements are bracket-matched and the array's
 * own grammar is checked before the first element is handed out, but the elements' inside is not:
 * scan_envelope does that for each.
 *
 * Returns the number of elements, or -1: not an array, wrong grammar, more than max_elements
 * (ERROR_LIMIT), or stopped (err untouched).
 */
typedef int scan_element_fn(struct slice element, void *arg);
int scan_array(struct slice text, size_t max_elements, scan_element_fn *on_element, void *arg,
	       struct error *err) must_check;

/* The type that the first byte after white space announces; JSON_ABSENT if none. */
enum json_type scan_type(struct slice text);

/*
 * Looks up a direct member of an object that was already scanned as valid. Names compare by bytes;
 * a name written with escapes never matches. The first match counts. Absent: type JSON_ABSENT.
 * `object` that is not an object has no members.
 */
struct json scan_member(struct slice object, struct slice name);
/* The same along a path, e.g. {"capabilities", "elicitation"}. */
struct json scan_path(struct slice object, const char *const *path, size_t length);

/* An integer that fits; -1 otherwise. */
int scan_int(struct json value, long long *number_r) must_check;
/* The bytes between the quotes if value is a string without escapes; else {NULL, 0}. */
struct slice scan_plain_string(struct json value);

/*
 * Appends what the string means, its escapes decoded, as UTF-8. -1: not a string, or with half a
 * surrogate pair, which has no meaning. RFC 8259 §7.
 */
int scan_decode_string(struct json value, struct buf *out) must_check;
/*
 * The same without a copy of what has no escape: *text_r is what lies between the quotes, or else `room`, which is overwritten.
 * -1: *text_r is empty.
 */
int scan_read_string(struct json value, struct buf *room, struct slice *text_r) must_check;

/*
 * Calls on_member for each member of an object already scanned as valid, in order; the name comes
 * without quotes, escapes not decoded. It returns 0 to go on, -1 to stop.
 */
typedef int scan_member_fn(struct slice name, struct json value, void *arg);
void scan_members(struct slice object, scan_member_fn *on_member, void *arg);

/* What on_token is called with. The members of an object, and the elements of an array, are one deeper than it. */
enum scan_token_kind {
	SCAN_CONTAINER, /* an object or array begins */
	SCAN_NAME,      /* of a member */
	SCAN_STRING,
};
struct scan_token {
	enum scan_token_kind kind;
	size_t depth;      /* of the value: 0 */
	struct json value; /* of a container the type alone */
};

/*
 * Walks through a value already scanned as valid, with all that it contains, in order: calls on_token for each container,
 * name and string. It returns 0 to go on, -1 to stop. Linear, whatever the depth.
 */
typedef int scan_token_fn(const struct scan_token *token, void *arg);
void scan_tokens(struct slice value, scan_token_fn *on_token, void *arg);

#endif
