/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all options: the only place that defines which keys exist, what a value must look
 * like, and what it needs of others. Reading, checking, printing, the sample file and the manual page
 * all follow it. What a row cannot say is a function in rules.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

enum option_type {
	OPTION_SECTION, /* a map of further options; fields of the same struct */
	OPTION_GROUP, /* records on lines of their own: a list, as OPTION_RECORDS, or the loader's */
	OPTION_TEXT,  /* char *, never empty; NULL: not given */
	OPTION_SLICE,    /* the same as struct slice; empty: not given */
	OPTION_BOOL,     /* bool */
	OPTION_COUNT,    /* uint64_t */
	OPTION_SIZE,     /* uint64_t, bytes */
	OPTION_PERCENT,  /* uint64_t */
	OPTION_DURATION, /* uint64_t, milliseconds */
	OPTION_RANGE,    /* two uint64_t, one after the other, milliseconds */
	OPTION_ENUM,     /* an enum; or a bool, which is one of two words */
	OPTION_TEXTS,    /* struct slices, each text terminated */
	OPTION_PORTS,    /* struct config_ports */
	OPTION_ENV,      /* env and env_count of struct config_server */
	OPTION_TIMEOUTS, /* struct tool_timeouts */
	OPTION_DATE,     /* uint64_t, milliseconds since 1970; 0: not given */
	OPTION_LEGS,     /* struct server_legs */
	OPTION_LISTS,    /* struct slice_map, likewise */
	/* struct slice_map, with one text each; with choices, a JSON object of those keys: a text, or
	 * (value 1) true or false */
	OPTION_NAMED,
	OPTION_OBJECT,  /* struct slice: such an object; empty: not given */
	OPTION_RECORDS, /* a struct of a pointer to records and a size_t, their number */
	OPTION_SECRET,  /* as OPTION_TEXT, but never shown; {file:} etc. are resolved */
	OPTION_FIELDS,  /* struct fetch_fields: names, and values as OPTION_SECRET */
	OPTION_TYPE_COUNT
};

/* The records: options below `listen[]` are fields of struct config_listen, and so on. */
#define OPTIONS_TOP ""
#define OPTIONS_LISTEN "listen[]"
#define OPTIONS_TLS "listen[].tls[]"
#define OPTIONS_SERVER "servers.NAME"
#define OPTIONS_ENDPOINT "endpoints.NAME" /* also of struct config_server */
#define OPTIONS_TOKEN "auth.tokens[]"
#define OPTIONS_ROLE "roles.NAME"
#define OPTIONS_ISSUER "auth.issuers[]"
#define OPTIONS_DENIAL "auth.deny[]"
#define OPTIONS_TOOL_LIMIT "servers.NAME.tools.limits[]"

/* Who needs it, apart from people: see config_print_for_gateway. */
enum option_reader { OPTION_FOR_ALL, OPTION_FOR_CHILD, OPTION_FOR_GATEWAY, OPTION_FOR_FETCHER };

/* One record without a list may stand for a list; nothing at all may stand for one record of defaults. */
enum option_list { OPTION_LIST, OPTION_LIST_OR_ONE, OPTION_LIST_NEVER_EMPTY };

struct option_choice {
	const char *name; /* NULL ends the array */
	int value;
};

/*
 * What an option says about another one, which has to be of the same record, or not of a record.
 * table.c words the message, with `why` at its end.
 */
enum relation_kind {
	RELATION_NONE, /* ends the array */
	/* A problem, if this option is used: not its default, and of lists and maps not empty. */
	RELATION_NEEDS,    /* the other must be given, or have one of the words */
	RELATION_COMPLETE, /* the other must be given: "the key is missing", where it belongs */
	RELATION_EXCLUDES, /* the other must not be used */
	/* A problem, whether they are given or have their defaults. */
	RELATION_AT_MOST, /* a number: it must not be more than the other */
	/* A warning: this option is given and not its default, but has no effect. */
	RELATION_IDLE_UNLESS, /* the other is given, or has one of the words */
};

struct option_relation {
	enum relation_kind kind;
	const char *other; /* its path */
	const char *words; /* with spaces between; NULL: any; "": any, but not empty */
	const char *why;
	const char *when; /* only if this option has this word; NULL: always */
};

/*
 * Whether a text has the form that the option wants; -1: it has not, and err holds the rest of the
 * sentence about it (forms.h).
 */
typedef int option_form_fn(struct slice text, struct error *err);

struct option {
	const char *path; /* of the record and the keys below it */
	enum option_type type;
	size_t offset;   /* in the record's struct */
	size_t size;     /* of the field */
	const char *def; /* as written in the file; NULL: not given */
	const char *min; /* in the same notation; NULL: no limit */
	const char *max;
	const struct option_choice *choices; /* OPTION_ENUM */
	const char *example;                 /* if there is no default to show */
	const char *otherwise;               /* what applies if it is not given and def is NULL */
	const char *help;                    /* full sentences */
	option_form_fn *
		form; /* of the text, of each text of a list or of the lists; form_signing_key: and the gateway sees the public part alone */
	option_form_fn *name_form;               /* OPTION_LISTS, OPTION_FIELDS: of each name */
	const struct option_relation *relations; /* NULL: none */
	const char *records; /* the path of one record; NULL: none, or the loader creates them */
	size_t record_size;
	enum option_list list; /* of the records */
	enum option_reader reader;
	bool is_required;
	const char *or_key;  /* of a server: this key or that one is required; NULL: neither */
	bool is_for_command; /* of a server: it means nothing for one behind a URL */
	bool is_rule; /* of a server: a reload applies it at once, also to running processes */
};

extern const struct option options_table[];
extern const size_t options_count;
