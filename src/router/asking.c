/* SPDX-License-Identifier: Apache-2.0 */
#include "router/asking.h"

#include <string.h>

#include "jsonrpc/scan.h"

static bool is_told(struct slice capabilities, const char *capability, const char *member)
{
	const char *const path[] = { capability, member };
	enum json_type type = scan_path(capabilities, path, member != NULL ? 2 : 1).type;

	return type != JSON_ABSENT && type != JSON_NULL && type != JSON_FALSE;
}

bool asking_is_declared(struct slice capabilities, const struct method *method)
{
	return method->capability != NULL && method->id != METHOD_LIST_CHANGED &&
	       is_told(capabilities, method->capability, NULL);
}

bool asking_can_open_urls(struct slice capabilities)
{
	return is_told(capabilities, "elicitation", "url");
}

/* The members of a server request that decide whether the client may be sent it. */
struct deciding {
	bool has_mode;
	bool has_tools;
	bool is_doubtful; /* the client may read one of them differently */
};

static int note_deciding(struct slice name, struct json value, void *arg)
{
	struct deciding *deciding = arg;
	bool is_mode = slice_is_equal(name, SLICE_LIT("mode"));
	bool is_tools = slice_is_equal(name, SLICE_LIT("tools"));
	bool is_like = slice_is_equal_nocase(name, SLICE_LIT("mode")) ||
		       slice_is_equal_nocase(name, SLICE_LIT("tools"));

	(void)value;
	deciding->is_doubtful |=
		(is_mode && deciding->has_mode) || (is_tools && deciding->has_tools) ||
		(is_like && !is_mode && !is_tools) || memchr(name.p, '\\', name.n) != NULL;
	deciding->has_mode |= is_mode;
	deciding->has_tools |= is_tools;
	return 0;
}

bool asking_is_possible(struct slice capabilities, const struct method *method, struct slice params)
{
	struct deciding deciding = { .is_doubtful = false };
	struct json mode;
	struct slice name;

	if (method->id != METHOD_SAMPLING && method->id != METHOD_ELICITATION)
		return true;
	scan_members(params, note_deciding, &deciding);
	if (deciding.is_doubtful)
		return false;
	if (method->id == METHOD_SAMPLING)
		return !deciding.has_tools || is_told(capabilities, "sampling", "tools");
	mode = scan_member(params, SLICE_LIT("mode"));
	name = scan_plain_string(mode);
	if (slice_is_equal(name, SLICE_LIT("url")))
		return asking_can_open_urls(capabilities);
	/* If the mode is absent or null, it is a form. */
	if (mode.type != JSON_ABSENT && mode.type != JSON_NULL &&
	    !slice_is_equal(name, SLICE_LIT("form")))
		return false;
	return is_told(capabilities, "elicitation", "form") || !asking_can_open_urls(capabilities);
}

unsigned int asking_needs(const struct method *method, struct slice params)
{
	struct json mode = scan_member(params, SLICE_LIT("mode"));

	if (method->id == METHOD_ROOTS_LIST)
		return ASKING_ROOTS;
	if (method->id == METHOD_SAMPLING)
		return scan_member(params, SLICE_LIT("tools")).type == JSON_ABSENT ?
			       ASKING_SAMPLING :
			       ASKING_SAMPLING_TOOLS;
	if (method->id != METHOD_ELICITATION)
		return 0;
	return slice_is_equal(scan_plain_string(mode), SLICE_LIT("url")) ? ASKING_URLS :
									   ASKING_FORMS;
}

static void append_need(struct buf *out, const char *capability, const char *members)
{
	buf_printf(out, "%s\"%s\":{%s}", out->data[out->len - 1] == '{' ? "" : ",", capability,
		   members);
}

void asking_append_needs(struct buf *out, unsigned int needs)
{
	unsigned int modes = needs & (ASKING_FORMS | ASKING_URLS);

	buf_append_char(out, '{');
	if (needs & ASKING_ROOTS)
		append_need(out, "roots", "");
	if (needs & (ASKING_SAMPLING | ASKING_SAMPLING_TOOLS))
		append_need(out, "sampling", needs & ASKING_SAMPLING_TOOLS ? "\"tools\":{}" : "");
	if (modes != 0)
		append_need(out, "elicitation",
			    modes == ASKING_FORMS ? "\"form\":{}" :
			    modes == ASKING_URLS  ? "\"url\":{}" :
						    "\"form\":{},\"url\":{}");
	buf_append_char(out, '}');
}

const struct method *asking_method(struct slice question)
{
	struct json written = scan_member(question, SLICE_LIT("method"));
	const struct method *method;
	struct buf room = { 0 };
	struct slice name;

	(void)!scan_read_string(written, &room, &name);
	method = method_find(name);
	buf_fini(&room);
	return method;
}
