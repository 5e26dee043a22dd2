/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict reader of request heads. It takes what RFC 9112 generates and nothing that RFC 9112
 * only tolerates: two programs that tolerate differently are how requests are smuggled.
 *
 * It does not read bodies, decode percent signs, or judge values beyond those that frame the
 * message (Host's form, Content-Length, Transfer-Encoding, Expect, Connection); all others are only
 * located. Below the reader: what the layers above ask of a request that was read, which are its
 * Accept, its media type, a member of its query, the Mcp-Param-* fields, and a copy that outlives
 * the head. Only the copy allocates.
 *
 * Invariant: the outcome depends on the bytes alone, never on how they were split. So what is wrong
 * with a head that is not complete yet counts only if find_end() says it; any other verdict waits
 * for the end.
 *
 * RFC 9112 §2, §3, §5, §6; RFC 9110 §5, §7.2, §8.3, §10.1.1, §12.5.1; SEC-20, SEC-22, SEC-23,
 * SEC-28.
 */
#include "http/parse.h"

#include <endian.h>

#include "base/mem.h"
#include "base/text.h"

const struct slice http_field_names[HTTP_FIELD_COUNT] = {
#define X(id, letter, name) SLICE(name),
#include "http/field.def"
};

/*
 * A perfect hash of the names above: length and first letter. Two names in one slot do not compile
 * (overridden initialiser); slots hold the field's number plus one, 0 is empty.
 */
#define SLOTS 128
#define SLOT(length, letter) (((length)*12u + ((unsigned int)(letter) | 0x20u)) % SLOTS)

static const uint8_t slots[SLOTS] = {
#define X(id, letter, name) [SLOT(sizeof(name) - 1, letter)] = HTTP_##id + 1,
#include "http/field.def"
};

static const struct {
	struct slice name;
	enum http_method method;
} methods[] = {
	{ SLICE("POST"), HTTP_POST },     { SLICE("GET"), HTTP_GET },
	{ SLICE("DELETE"), HTTP_DELETE }, { SLICE("OPTIONS"), HTTP_OPTIONS },
	{ SLICE("HEAD"), HTTP_HEAD },     { SLICE("PUT"), HTTP_PUT },
	{ SLICE("PATCH"), HTTP_PATCH },
};

/* Fields whose names servers choose. MOD-HDR-04 */
static const struct slice param_prefix = SLICE("Mcp-Param-");

/* Proxies write them and clients do not, besides Forwarded and X-Forwarded-For; what ends in '-' is how they begin. SEC-69 */
static const struct slice proxy_names[] = {
	SLICE("X-Forwarded-"), SLICE("X-Real-IP"),      SLICE("Via"),
	SLICE("CF-"),          SLICE("True-Client-IP"), SLICE("X-Client-IP"),
};

/* What a byte may be part of. */
#define IN_TOKEN 1  /* RFC 9110 §5.6.2 tchar: methods, field names */
#define IN_TARGET 2 /* visible ASCII less '#', which no origin-form has */
#define IN_VALUE 4  /* HTAB, SP, VCHAR, obs-text */
#define IN_NAME 8   /* RFC 3986 reg-name less ',', which would make a list of Host */

#define IS_ALNUM(c) ((((c) | 0x20) >= 'a' && ((c) | 0x20) <= 'z') || ((c) >= '0' && (c) <= '9'))
#define IS_BOTH(c) /* in tokens and in host names */                                          \
	((c) == '!' || (c) == '$' || (c) == '%' || (c) == '&' || (c) == '\'' || (c) == '*' || \
	 (c) == '+' || (c) == '-' || (c) == '.' || (c) == '_' || (c) == '~')
#define IS_TOKEN(c) \
	(IS_ALNUM(c) || IS_BOTH(c) || (c) == '#' || (c) == '^' || (c) == '`' || (c) == '|')
#define IS_NAME(c) \
	(IS_ALNUM(c) || IS_BOTH(c) || (c) == '(' || (c) == ')' || (c) == ';' || (c) == '=')
#define IS_TARGET(c) ((c) > 0x20 && (c) < 0x7f && (c) != '#')
#define IS_VALUE(c) (((c) >= 0x20 && (c) != 0x7f) || (c) == '\t')

#define BYTE(c)                                                         \
	(IS_TOKEN(c) ? IN_TOKEN : 0) | (IS_TARGET(c) ? IN_TARGET : 0) | \
		(IS_VALUE(c) ? IN_VALUE : 0) | (IS_NAME(c) ? IN_NAME : 0)
#define BYTES4(c) BYTE(c), BYTE((c) + 1), BYTE((c) + 2), BYTE((c) + 3)
#define BYTES16(c) BYTES4(c), BYTES4((c) + 4), BYTES4((c) + 8), BYTES4((c) + 12)
#define BYTES64(c) BYTES16(c), BYTES16((c) + 16), BYTES16((c) + 32), BYTES16((c) + 48)

static const uint8_t classes[256] = { BYTES64(0), BYTES64(64), BYTES64(128), BYTES64(192) };

/* One pass over a head. */
struct head {
	const char *at;
	const char *end;
	const struct http_parse_limits *limits;
	struct http_request *request;
	struct slice authority; /* of an absolute target, which counts instead of Host */
	bool close;
	int status; /* after a failure: of HTTP, or 0 if the bytes ran out */
	const char *reason;
};

static int parse_refuse(struct head *head, int status, const char *reason)
{
	head->status = status;
	head->reason = reason;
	return -1;
}

static int run_out(struct head *head)
{
	return parse_refuse(head, 0, NULL);
}

static const char *skip_class(const char *at, const char *end, unsigned int class)
{
	while (at < end && (classes[(unsigned char)*at] & class) != 0)
		at++;
	return at;
}

#define ONES UINT64_C(0x0101010101010101)
#define TOPS (ONES * 0x80)

/* Eight bytes; the first is the lowest. */
static uint64_t load_word(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return le64toh(word);
}

/* Up to the colon of a field's name, or what else is no byte of one. Eight at a time, while they are letters and '-'. */
static const char *skip_name(const char *at, const char *end)
{
	while (end - at >= 8) {
		uint64_t word = load_word(at), small = (word | ONES * 0x20) & ~TOPS;
		uint64_t letters = (small + ONES * (0x80 - 'a')) & ~(small + ONES * (0x7f - 'z'));
		uint64_t differs = word ^ ONES * '-';
		uint64_t dashes = ~(((differs & ~TOPS) + ~TOPS) | differs);
		uint64_t others = (~(letters | dashes) | word) & TOPS;

		if (others != 0) {
			at += __builtin_ctzll(others) / 8;
			break;
		}
		at += 8;
	}
	return skip_class(at, end, IN_TOKEN);
}

/* The first byte that no value may hold. Eight at a time: values are most of a head. */
static const char *parse_skip_value(const char *at, const char *end)
{
	while (end - at >= 8) {
		uint64_t word = load_word(at);
		uint64_t low = (word - ONES * 0x20) & ~word; /* a byte under 0x20 */
		uint64_t del = ((word ^ ONES * 0x7f) - ONES) & ~(word ^ ONES * 0x7f); /* or DEL */
		uint64_t marks = (low | del) & TOPS; /* the lowest is right: borrows go upwards */

		if (marks == 0) {
			at += 8;
			continue;
		}
		at += __builtin_ctzll(marks) / 8;
		if (*at != '\t')
			return at;
		at++;
	}
	return skip_class(at, end, IN_VALUE);
}

/* The CRLF at head->at. */
static int take_crlf(struct head *head, const char *otherwise)
{
	if (head->at == head->end)
		return run_out(head);
	if (*head->at != '\r')
		return parse_refuse(head, 400, otherwise);
	if (head->at + 1 == head->end)
		return run_out(head);
	if (head->at[1] != '\n')
		return parse_refuse(head, 400, "a carriage return without a line feed");
	head->at += 2;
	return 0;
}

static int parse_check_version(struct head *head, struct slice version)
{
	static const struct slice prefix = SLICE("HTTP/");

	head->request->minor_version = slice_is_equal(version, SLICE_LIT("HTTP/1.1"));
	if (head->request->minor_version == 1 || slice_is_equal(version, SLICE_LIT("HTTP/1.0")))
		return 0;
	if (version.n > prefix.n && slice_is_equal_nocase(slice_of(version.p, prefix.n), prefix))
		return parse_refuse(head, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	return parse_refuse(head, 400, "the request line does not end in an HTTP version");
}

/* uri-host [":" port], not empty. */
static bool is_host(struct slice host)
{
	const char *end = host.p + host.n, *at = host.p, *port;

	if (host.n > 0 && *at == '[') {
		at++;
		while (at < end &&
		       ((IS_ALNUM(*at) && (*at | 0x20) <= 'f') || *at == ':' || *at == '.'))
			at++;
		if (at == end || *at != ']' || at == host.p + 1)
			return false;
		at++;
	} else {
		at = skip_class(at, end, IN_NAME);
		if (at == host.p)
			return false;
	}
	if (at == end)
		return true;
	port = at + 1;
	if (*at != ':' || end - port > 5)
		return false;
	for (at = port; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
	}
	return true;
}

/* Cuts `http://authority` off an absolute target; false: it is none. RFC 9112 §3.2.2 */
static bool cut_authority(struct slice *target, struct slice *authority_r)
{
	static const struct slice schemes[] = { SLICE("http://"), SLICE("https://") };

	CHECK(target->n > 0);
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct slice scheme = schemes[i];
		size_t n = scheme.n;

		if (target->n < n || !slice_is_equal_nocase(slice_of(target->p, n), scheme))
			continue;
		while (n < target->n && target->p[n] != '/' && target->p[n] != '?')
			n++;
		*authority_r = slice_of(target->p + scheme.n, n - scheme.n);
		*target = slice_of(target->p + n, target->n - n);
		return true;
	}
	return false;
}

static int split_target(struct head *head)
{
	struct http_request *request = head->request;
	struct slice target = request->target;
	const char *mark;

	CHECK(target.n > 0);
	request->path = target;
	if (target.p[0] != '/') {
		if (request->method == HTTP_OPTIONS && slice_is_equal(target, SLICE_LIT("*")))
			return 0;
		if (!cut_authority(&target, &head->authority) || !is_host(head->authority))
			return parse_refuse(head, 400,
					    "the request target is neither a path nor a URL");
	}
	mark = memchr(target.p, '?', target.n);
	request->path = mark != NULL ? slice_between(target.p, mark) : target;
	if (mark != NULL)
		request->query = slice_between(mark + 1, target.p + target.n);
	/* A URL without a path: the slash before its authority, as all slices lie in the head. */
	if (request->path.n == 0)
		request->path = slice_of(head->authority.p - 1, 1);
	return 0;
}

static int parse_request_line(struct head *head)
{
	struct http_request *request = head->request;
	const char *begin = head->at, *at = begin, *end = head->end;
	struct slice version;

	at = skip_class(begin, end, IN_TOKEN);
	if (at == end)
		return run_out(head);
	if (at == begin || *at != ' ')
		return parse_refuse(head, 400,
				    "the request line does not begin with a method and one space");
	request->method_name = slice_between(begin, at);
	request->target.p = ++at;
	at = skip_class(at, end, IN_TARGET);
	if (at == end)
		return run_out(head);
	if (at == request->target.p || *at != ' ')
		return parse_refuse(head, 400,
				    "the request target is empty or holds a byte it may not hold");
	request->target.n = (size_t)(at - request->target.p);
	version.p = ++at;
	head->at = skip_class(at, end, IN_TARGET);
	version.n = (size_t)(head->at - version.p);
	if (take_crlf(head, "the request line does not end in an HTTP version and CRLF") != 0)
		return -1;
	if ((size_t)(head->at - begin) - 2 > head->limits->line_max)
		return parse_refuse(head, 414, "the request line is too long");
	request->method = HTTP_OTHER;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (slice_is_equal(methods[i].name, request->method_name))
			request->method = methods[i].method;
	}
	if (parse_check_version(head, version) != 0)
		return -1;
	return split_target(head);
}

/* Sound for tokens only: '-' would also match CR. Eight bytes at a time, of which the last ones may have been seen before. */
static bool parse_is_name(struct slice token, struct slice name)
{
	uint64_t different = 0;

	if (token.n != name.n)
		return false;
	if (token.n < 8) {
		for (size_t i = 0; i < token.n; i++)
			different |= (unsigned char)(token.p[i] ^ name.p[i]);
		return (different & ~UINT64_C(0x20)) == 0;
	}
	for (size_t i = 0; i + 8 <= token.n; i += 8)
		different |= load_word(token.p + i) ^ load_word(name.p + i);
	different |= load_word(token.p + token.n - 8) ^ load_word(name.p + name.n - 8);
	return (different & ~(ONES * 0x20)) == 0;
}

/* Whether the comma-separated list has this member, in any case. */
static bool list_has(struct slice list, struct slice member)
{
	while (list.n > 0) {
		if (slice_is_equal_nocase(slice_trim(slice_cut(&list, ',')), member))
			return true;
	}
	return false;
}

static bool is_param(struct slice name)
{
	return name.n > param_prefix.n &&
	       slice_is_equal_nocase(slice_of(name.p, param_prefix.n), param_prefix);
}

static bool is_of_proxy(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(proxy_names); i++) {
		struct slice own = proxy_names[i];
		bool is_prefix = own.p[own.n - 1] == '-';

		if (name.n >= own.n && (is_prefix || name.n == own.n) &&
		    slice_is_equal_nocase(slice_of(name.p, own.n), own))
			return true;
	}
	return false;
}

/* The line begins with the name and ends before head->at. */
static void record_other(struct head *head, struct slice name)
{
	struct slice *params = &head->request->params;

	if (is_param(name))
		*params = slice_between(params->p != NULL ? params->p : name.p, head->at);
	else if (is_of_proxy(name))
		head->request->has_proxy_field = true;
}

static void record_field(struct head *head, struct slice name, struct slice value)
{
	struct http_request *request = head->request;
	unsigned int slot = slots[SLOT((unsigned int)name.n, (unsigned char)name.p[0])];
	enum http_field field;

	if (slot == 0 || !parse_is_name(name, http_field_names[slot - 1])) {
		record_other(head, name);
		return;
	}
	field = (enum http_field)(slot - 1);
	if (http_has(request, field))
		request->repeated |= 1u << field;
	if (!http_has(request, field) || field >= HTTP_FORWARDED)
		request->fields[field] = value;
	request->seen |= 1u << field;
	if (field == HTTP_CONNECTION && list_has(value, SLICE_LIT("close")))
		head->close = true;
}

static int parse_refuse_name(struct head *head, const char *begin, const char *at)
{
	if (at > begin && (*at == ' ' || *at == '\t'))
		return parse_refuse(head, 400, "white space between a field's name and its colon");
	if (at > begin)
		return parse_refuse(head, 400, "a field's name is not a token followed by a colon");
	if (*at == ' ' || *at == '\t')
		return parse_refuse(head, 400, "a field is folded over two lines");
	return parse_refuse(head, 400, "a field without a name");
}

static int parse_field(struct head *head)
{
	const char *begin = head->at, *end = head->end;
	const char *at = skip_name(begin, end), *last;
	struct slice name, value;

	if (at == end)
		return run_out(head);
	if (at == begin || *at != ':')
		return parse_refuse_name(head, begin, at);
	name = slice_between(begin, at);
	CHECK(name.n > 0);
	at++;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	last = head->at = parse_skip_value(at, end);
	while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
		last--;
	value = slice_between(at, last);
	if (take_crlf(head, "a control character in a field's value") != 0)
		return -1;
	record_field(head, name, value);
	return 0;
}

static int check_host(struct head *head)
{
	struct http_request *request = head->request;

	if ((request->repeated & 1u << HTTP_HOST) != 0)
		return parse_refuse(head, 400, "more than one Host field");
	if (!http_has(request, HTTP_HOST) && request->minor_version > 0)
		return parse_refuse(head, 400, "no Host field");
	if (http_has(request, HTTP_HOST) && !is_host(request->fields[HTTP_HOST]))
		return parse_refuse(head, 400, "the Host field is not a host and maybe a port");
	if (head->authority.n > 0) {
		request->fields[HTTP_HOST] = head->authority;
		request->seen |= 1u << HTTP_HOST;
	}
	return 0;
}

static int check_coding(struct head *head)
{
	struct http_request *request = head->request;

	if (http_has(request, HTTP_CONTENT_LENGTH))
		return parse_refuse(head, 400, "both Content-Length and Transfer-Encoding");
	if (request->minor_version == 0)
		return parse_refuse(head, 400, "Transfer-Encoding in HTTP/1.0");
	if ((request->repeated & 1u << HTTP_TRANSFER_ENCODING) != 0 ||
	    !slice_is_equal_nocase(request->fields[HTTP_TRANSFER_ENCODING], SLICE_LIT("chunked")))
		return parse_refuse(head, 501,
				    "the only transfer coding known here is a single chunked");
	request->body = HTTP_BODY_CHUNKED;
	return 0;
}

static int check_length(struct head *head)
{
	struct http_request *request = head->request;
	struct slice digits = request->fields[HTTP_CONTENT_LENGTH];

	if ((request->repeated & 1u << HTTP_CONTENT_LENGTH) != 0)
		return parse_refuse(head, 400, "more than one Content-Length field");
	if (digits.n > 19 || text_parse_u64(digits, &request->content_length) != 0)
		return parse_refuse(head, 400, "Content-Length is not a number of up to 19 digits");
	request->body = HTTP_BODY_LENGTH;
	return 0;
}

static int check_expect(struct head *head)
{
	struct http_request *request = head->request;

	if (!http_has(request, HTTP_EXPECT))
		return 0;
	if ((request->repeated & 1u << HTTP_EXPECT) != 0 ||
	    !slice_is_equal_nocase(request->fields[HTTP_EXPECT], SLICE_LIT("100-continue")))
		return parse_refuse(head, 417, "the only expectation known here is 100-continue");
	/* Without a body there is nothing to wait for, and HTTP/1.0 has no interim answers. */
	request->expects_continue =
		request->minor_version == 1 &&
		(request->body == HTTP_BODY_CHUNKED || request->content_length > 0);
	return 0;
}

/* What only the whole head can tell. */
static int parse_check_head(struct head *head)
{
	struct http_request *request = head->request;

	if (check_host(head) != 0)
		return -1;
	if (http_has(request, HTTP_TRANSFER_ENCODING)) {
		if (check_coding(head) != 0)
			return -1;
	} else if (http_has(request, HTTP_CONTENT_LENGTH) && check_length(head) != 0) {
		return -1;
	}
	request->keep_alive = request->minor_version == 1 && !head->close;
	return check_expect(head);
}

/* 0 with head->at behind the final CRLF, or -1 with head->status. */
static int parse_lines(struct head *head)
{
	size_t fields = 0;

	if (parse_request_line(head) != 0)
		return -1;
	while (head->at < head->end && *head->at != '\r') {
		if (++fields > head->limits->fields_max)
			return parse_refuse(head, 431, "too many fields");
		if (parse_field(head) != 0)
			return -1;
	}
	if (take_crlf(head, "") != 0)
		return -1;
	return parse_check_head(head);
}

/* 2 if `in` begins with an empty line, which RFC 9112 §2.2 asks servers to skip, else 0. */
static size_t leading_line(struct slice in)
{
	return in.n >= 2 && in.p[0] == '\r' && in.p[1] == '\n' ? 2 : 0;
}

/*
 * Where the head ends, by its line feeds alone; 0 if the end has not come, -1 with a reason not to wait
 * for it: sizes, and a line feed without carriage return, because its sender would wait for us.
 */
static long find_end(struct slice in, size_t *seen, struct head *head)
{
	const struct http_parse_limits *limits = head->limits;
	size_t start = leading_line(in), line_end = start + limits->line_max + 2;
	size_t window = in.n < limits->head_max ? in.n : limits->head_max;
	size_t at = *seen > start ? *seen : start;
	const char *feed;

	if (window >= line_end && at < line_end &&
	    memchr(in.p + start, '\n', line_end - start) == NULL)
		return parse_refuse(head, 414, "the request line is too long");
	while (at < window && (feed = memchr(in.p + at, '\n', window - at)) != NULL) {
		at = (size_t)(feed - in.p) + 1;
		if (feed == in.p || feed[-1] != '\r')
			return parse_refuse(head, 400, "a line feed without a carriage return");
		if (feed[-2] == '\n') /* a CRLF at the very beginning is before `at` */
			return (long)at;
	}
	*seen = window;
	if (window == limits->head_max)
		return parse_refuse(head, 431, "the head is too long");
	return 0;
}

static long parse_from(struct slice in, struct head *head)
{
	memset(head->request, 0, sizeof(*head->request));
	head->at = in.p + leading_line(in);
	head->end = in.p + in.n;
	head->close = false;
	if (parse_lines(head) != 0)
		return -1;
	CHECK(head->at <= head->end);
	return head->at - in.p;
}

long http_parse_head(struct slice in, const struct http_parse_limits *limits, size_t *seen,
		     struct http_request *request_r, int *status_r, const char **reason_r)
{
	struct head head = { .limits = limits, .request = request_r };
	size_t window = in.n < limits->head_max ? in.n : limits->head_max;
	long length;

	if (in.n == 0)
		return 0;
	CHECK(*seen <= in.n);
	/* As a rule the whole head is there, and this is the only pass. A failure may be for lack of bytes. */
	if (*seen == 0) {
		length = parse_from(slice_of(in.p, window), &head);
		if (length > 0)
			return length;
	}
	length = find_end(in, seen, &head);
	if (length > 0)
		length = parse_from(slice_of(in.p, (size_t)length), &head);
	if (length < 0) {
		*status_r = head.status;
		*reason_r = head.reason;
	}
	return length;
}

/* As slice_cut, but separators within quoted strings do not count. */
static struct slice cut_unquoted(struct slice *rest_r, char separator)
{
	struct slice all = *rest_r, rest = all, part = slice_cut(&rest, separator);
	bool quoted = false;

	if (part.n == 0 || memchr(part.p, '"', part.n) == NULL) {
		*rest_r = rest;
		return part;
	}
	for (size_t i = 0; i < all.n; i++) {
		if (all.p[i] == '"')
			quoted = !quoted;
		else if (quoted && all.p[i] == '\\')
			i++;
		else if (!quoted && all.p[i] == separator) {
			*rest_r = slice_of(all.p + i + 1, all.n - i - 1);
			return slice_of(all.p, i);
		}
	}
	*rest_r = (struct slice){ NULL, 0 };
	return all;
}

/* Cuts the next `; name=value` off *rest_r. False if there is none left. */
static bool cut_parameter(struct slice *rest_r, struct slice *name_r, struct slice *value_r)
{
	struct slice part;

	if (rest_r->n == 0)
		return false;
	part = cut_unquoted(rest_r, ';');
	*name_r = slice_trim(slice_cut(&part, '='));
	*value_r = slice_trim(part);
	return true;
}

/* "0", "0.", "0.000". */
static bool is_zero_weight(struct slice weight)
{
	if (weight.n == 0 || weight.p[0] != '0' || (weight.n > 1 && weight.p[1] != '.'))
		return false;
	for (size_t i = 2; i < weight.n; i++) {
		if (weight.p[i] != '0')
			return false;
	}
	return true;
}

/* 0 if the range does not hold the type, else higher for the more specific. */
static unsigned int range_rank(struct slice range, struct slice type)
{
	if (slice_is_equal_nocase(range, type))
		return 3;
	if (slice_is_equal(range, SLICE_LIT("*/*")))
		return 1;
	if (range.n < 3 || range.n > type.n + 1 || range.p[range.n - 1] != '*' ||
	    range.p[range.n - 2] != '/')
		return 0;
	range.n--;
	return slice_is_equal_nocase(range, slice_of(type.p, range.n)) ? 2 : 0;
}

/* Nearly every list is without parameters: then it takes whatever it names. */
static bool parse_is_named(struct slice accept, struct slice type)
{
	while (accept.n > 0)
		if (range_rank(slice_trim(slice_cut(&accept, ',')), type) > 0)
			return true;
	return false;
}

bool http_accepts(struct slice accept, const char *type)
{
	struct slice range, essence, name, value;
	unsigned int rank, best = 0;
	bool taken = false, zero;

	if (accept.n > 0 && memchr(accept.p, ';', accept.n) == NULL &&
	    memchr(accept.p, '"', accept.n) == NULL)
		return parse_is_named(accept, slice_str(type));
	while (accept.n > 0) {
		range = cut_unquoted(&accept, ',');
		essence = slice_trim(cut_unquoted(&range, ';'));
		zero = false;
		while (cut_parameter(&range, &name, &value)) {
			if (slice_is_equal_nocase(name, SLICE_LIT("q")))
				zero = is_zero_weight(value);
		}
		rank = range_rank(essence, slice_str(type));
		if (rank > best || (rank == best && rank > 0 && !taken))
			taken = !zero;
		if (rank > best)
			best = rank;
	}
	return taken;
}

bool http_request_accepts(const struct http_request *request, const char *type)
{
	if (!http_has(request, HTTP_ACCEPT) || request->repeated & 1u << HTTP_ACCEPT)
		return true;
	return http_accepts(request->fields[HTTP_ACCEPT], type);
}

struct http_accepted http_request_accepted(const struct http_request *request)
{
	/* What nearly every client writes. */
	static const struct slice both[] = {
		SLICE("application/json, text/event-stream"),
		SLICE("text/event-stream, application/json"),
	};

	for (size_t i = 0; i < ARRAY_LEN(both); i++)
		if (slice_is_equal(request->fields[HTTP_ACCEPT], both[i]))
			return (struct http_accepted){ true, true };
	return (struct http_accepted){
		.json = http_request_accepts(request, "application/json"),
		.events = http_request_accepts(request, "text/event-stream"),
	};
}

bool http_is_media_type(struct slice value, const char *type)
{
	struct slice part, name, parameter, rest = value;

	(void)cut_unquoted(&rest, ',');
	if (rest.p != NULL)
		return false; /* a list: a proxy before us may have gone by another member of it */
	part = cut_unquoted(&value, ';');
	if (!slice_is_equal_nocase(slice_trim(part), slice_str(type)))
		return false;
	while (cut_parameter(&value, &name, &parameter)) {
		if (slice_is_equal_nocase(name, SLICE_LIT("charset")) &&
		    !slice_is_equal_nocase(parameter, SLICE_LIT("utf-8")) &&
		    !slice_is_equal_nocase(parameter, SLICE_LIT("\"utf-8\"")))
			return false;
	}
	return true;
}

bool http_query_find(struct slice query, struct slice name, struct slice *value_r)
{
	while (query.n > 0) {
		*value_r = slice_cut(&query, '&');
		if (slice_is_equal(slice_cut(value_r, '='), name))
			return true;
	}
	return false;
}

bool http_next_param(struct slice *rest_r, struct slice *name_r, struct slice *value_r)
{
	struct slice line, name;

	while (rest_r->n > 0) {
		line = slice_cut(rest_r, '\n');
		name = slice_cut(&line, ':');
		if (!is_param(name))
			continue;
		CHECK(line.n > 0); /* its carriage return, if nothing else */
		*name_r = slice_of(name.p + param_prefix.n, name.n - param_prefix.n);
		*value_r = slice_trim(slice_of(line.p, line.n - 1));
		return true;
	}
	return false;
}

bool http_next_asked_param(struct slice *rest_r, struct slice *name_r)
{
	while (rest_r->n > 0) {
		*name_r = slice_trim(slice_cut(rest_r, ','));
		if (is_param(*name_r) &&
		    skip_class(name_r->p, name_r->p + name_r->n, IN_TOKEN) == name_r->p + name_r->n)
			return true;
	}
	return false;
}

/* Moves the slice to *at; the text there is its copy from then on. */
static void move_slice(struct slice *slice, char **at)
{
	if (slice->p != NULL)
		*slice = mem_put_slice(at, *slice);
}

char *http_request_copy(const struct http_request *request, struct http_request *copy_r,
			size_t *size_r)
{
	size_t size = request->method_name.n + request->target.n + request->path.n +
		      request->query.n + request->params.n + 1;
	char *text, *at;

	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++)
		size += http_has(request, (enum http_field)i) ? request->fields[i].n : 0;
	text = at = mem_alloc(size);
	*copy_r = *request;
	move_slice(&copy_r->method_name, &at);
	move_slice(&copy_r->target, &at);
	move_slice(&copy_r->path, &at);
	move_slice(&copy_r->query, &at);
	move_slice(&copy_r->params, &at);
	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++)
		if (http_has(request, (enum http_field)i))
			move_slice(&copy_r->fields[i], &at);
	CHECK((size_t)(at - text) < size);
	*size_r = size;
	return text;
}

/* ---- bodies ---- */

/*
 * Bodies by length and in chunks. Payload is handed out as slices of the caller's bytes; nothing is
 * copied or kept. Chunk extensions and trailers are refused, not skipped: no client here sends any,
 * and each is a place where two readers can disagree.
 *
 * Invariant: one byte of framing is judged at a time, so a split changes the runs of payload but
 * not their sum nor the verdict; total never exceeds max.
 *
 * RFC 9112 §6.3, §7.1; SEC-20, SEC-21, SEC-29.
 */

enum body_place {
	BODY_DATA,    /* `left` bytes of payload follow */
	BODY_SIZE,    /* within the digits of a chunk's size */
	BODY_SIZE_LF, /* the digits' CR was seen */
	BODY_DATA_CR, /* a chunk's data is over */
	BODY_DATA_LF,
	BODY_LAST_CR, /* after the line of the chunk of size 0 */
	BODY_LAST_LF,
	BODY_COMPLETE,
	BODY_REFUSED,
};

#define DIGITS_MAX 15 /* 60 bits: sums of two sizes do not overflow */
#define OVERHEAD_FREE (16u * 1024)
#define OVERHEAD_PER_BYTE 4

int http_body_init(struct http_body_reader *reader, const struct http_request *request,
		   uint64_t max)
{
	memset(reader, 0, sizeof(*reader));
	reader->coding = request->body;
	reader->max = max;
	reader->place = BODY_COMPLETE;
	if (request->body == HTTP_BODY_CHUNKED)
		reader->place = BODY_SIZE;
	if (request->body != HTTP_BODY_LENGTH)
		return 0;
	if (request->content_length > max) {
		reader->place = BODY_REFUSED;
		return 413;
	}
	reader->left = request->content_length;
	if (reader->left > 0)
		reader->place = BODY_DATA;
	return 0;
}

bool http_body_is_complete(const struct http_body_reader *reader)
{
	return reader->place == BODY_COMPLETE;
}

static int parse_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

static int take_exactly(struct http_body_reader *reader, char c, char wanted, enum body_place next)
{
	if (c != wanted)
		return 400;
	reader->place = (int)next;
	return 0;
}

/* One byte outside the payload. Returns 0 or the status to refuse with. */
static int take_framing(struct http_body_reader *reader, char c)
{
	int value;

	if (++reader->overhead > OVERHEAD_FREE + OVERHEAD_PER_BYTE * reader->total)
		return 400;
	switch ((enum body_place)reader->place) {
	case BODY_SIZE:
		if (reader->digits > 0 && c == '\r') {
			reader->place = BODY_SIZE_LF;
			return 0;
		}
		value = parse_hex_value(c);
		if (value < 0 || ++reader->digits > DIGITS_MAX)
			return 400;
		reader->left = reader->left << 4 | (unsigned int)value;
		return 0;
	case BODY_SIZE_LF:
		CHECK(reader->total <= reader->max);
		reader->digits = 0;
		if (c == '\n' && reader->left > reader->max - reader->total)
			return 413;
		return take_exactly(reader, c, '\n', reader->left > 0 ? BODY_DATA : BODY_LAST_CR);
	case BODY_DATA_CR:
		return take_exactly(reader, c, '\r', BODY_DATA_LF);
	case BODY_DATA_LF:
		return take_exactly(reader, c, '\n', BODY_SIZE);
	case BODY_LAST_CR:
		return take_exactly(reader, c, '\r', BODY_LAST_LF);
	case BODY_LAST_LF:
		return take_exactly(reader, c, '\n', BODY_COMPLETE);
	case BODY_DATA:
	case BODY_COMPLETE:
	case BODY_REFUSED:
		break;
	}
	return 400;
}

static struct slice take_payload(struct http_body_reader *reader, struct slice *in)
{
	size_t size = in->n < reader->left ? in->n : (size_t)reader->left;
	struct slice payload = slice_of(in->p, size);

	CHECK(reader->left > 0);
	in->p += size;
	in->n -= size;
	reader->left -= size;
	reader->total += size;
	if (reader->left == 0)
		reader->place = reader->coding == HTTP_BODY_CHUNKED ? BODY_DATA_CR : BODY_COMPLETE;
	return payload;
}

enum http_body_status http_body_read(struct http_body_reader *reader, struct slice *in,
				     struct slice *payload_r, int *status_r)
{
	*payload_r = (struct slice){ NULL, 0 };
	while (reader->place != BODY_COMPLETE && reader->place != BODY_DATA && in->n > 0) {
		*status_r = take_framing(reader, *in->p);
		if (*status_r != 0) {
			reader->place = BODY_REFUSED;
			return HTTP_BODY_BAD;
		}
		in->p++;
		in->n--;
	}
	if (reader->place == BODY_DATA && in->n > 0)
		*payload_r = take_payload(reader, in);
	return reader->place == BODY_COMPLETE ? HTTP_BODY_DONE : HTTP_BODY_MORE;
}
