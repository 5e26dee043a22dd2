/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word is a run of letters and digits, in lower case; where lower case goes over into upper case another one begins, and each
 * ideograph is one. A word of the query also fits a longer one that begins with it, at half its weight. How much is read is bounded, and
 * shared by all tools: whoever says much of his own does not hide those of others.
 */
#include "endpoint/search.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/check.h"
#include "base/mem.h"
#include "io/aside.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

#define WORDS_MAX 16           /* of a query */
#define WORD_BYTES 40          /* of one; the rest of it does not count */
#define PREFIX_MIN 3           /* bytes of a word that longer ones fit */
#define TOOLS_MAX 4096         /* read of one list */
#define READ_BYTES (512 << 10) /* of their texts, the same of each */
#define ARGUMENTS_BYTES ((size_t)8 * 1024)
#define FOUND_USUAL 5
#define FOUND_MOST 20
#define K1 1.2 /* BM25's usual constants */
#define B 0.75

const struct slice search_tools = SLICE(
	"{\"tools\":["
	"{\"name\":\"" SEARCH_FIND
	"\",\"title\":\"Find a tool\",\"description\":\"Finds tools by what they do. Returns the "
	"definitions (name, description, inputSchema) of those that fit best; " SEARCH_CALL
	" calls one of them.\","
	"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"description\":\"What the tool should do, "
	"in a few words\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":20,\"description\":\"How many at most; 5 if it is not "
	"said\"}},\"required\":[\"query\"]},\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}},"
	"{\"name\":\"" SEARCH_CALL
	"\",\"title\":\"Call a tool\",\"description\":\"Calls a tool that " SEARCH_FIND
	" has found, by its "
	"name, with arguments as its inputSchema says.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
	"\"arguments\":{\"type\":\"object\"}},\"required\":[\"name\"]}}]}");

struct word {
	size_t n;
	char text[WORD_BYTES];
};

struct query {
	struct word words[WORDS_MAX];
	size_t count;
	double tools[WORDS_MAX]; /* how many have the word */
};

/* One tool of the list. */
struct entry {
	struct slice json;
	double weights[WORDS_MAX]; /* of each word of the query */
	double length;
	double score;
};

struct search {
	struct query query;
	struct entry *entries;
	size_t count;
	double length; /* of all entries */
	/* of what is being read */
	struct entry *entry;
	size_t left; /* bytes that may still be read of it */
	double weight;
	struct buf room;
};

/* ---- words ---- */

typedef void word_fn(struct search *search, const struct word *word);

static bool is_letter(utf8proc_category_t category)
{
	return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
	       (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_NO);
}

/* Of scripts that have no spaces. */
static bool is_word_alone(utf8proc_int32_t code)
{
	return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xf900 && code <= 0xfaff) ||
	       (code >= 0x20000 && code <= 0x3ffff);
}

static void end_word(struct search *search, struct word *word, word_fn *on_word)
{
	if (word->n > 0)
		on_word(search, word);
	word->n = 0;
}

static void add_to_word(struct word *word, utf8proc_int32_t code)
{
	utf8proc_uint8_t bytes[4] = { (utf8proc_uint8_t)code };
	size_t n = code < 0x80 ? 1 : (size_t)utf8proc_encode_char(code, bytes);

	if (word->n + n > sizeof(word->text))
		return;
	memcpy(word->text + word->n, bytes, n);
	word->n += n;
}

struct letter {
	utf8proc_int32_t code; /* in lower case */
	bool is_letter, is_upper, is_alone;
};

/* Cuts it off; most are ASCII. */
static struct letter cut_letter(struct slice *text)
{
	unsigned char first = (unsigned char)text->p[0];
	utf8proc_int32_t code = first;
	utf8proc_ssize_t n = 1;
	utf8proc_category_t category;

	if (first >= 0x80)
		n = utf8proc_iterate((const utf8proc_uint8_t *)text->p, (utf8proc_ssize_t)text->n,
				     &code);
	CHECK(n > 0); /* it was decoded */
	*text = slice_of(text->p + n, text->n - (size_t)n);
	if (first < 0x80)
		return (struct letter){ tolower(first), isalnum(first) != 0, isupper(first) != 0,
					false };
	category = utf8proc_category(code);
	return (struct letter){ utf8proc_tolower(code), is_letter(category),
				category == UTF8PROC_CATEGORY_LU, is_word_alone(code) };
}

static void read_words(struct search *search, struct slice text, word_fn *on_word)
{
	struct word word = { .n = 0 };
	bool was_upper = true; /* nothing before, which is no lower case */

	while (text.n > 0) {
		struct letter letter = cut_letter(&text);

		if (!letter.is_letter || letter.is_alone || (letter.is_upper && !was_upper))
			end_word(search, &word, on_word);
		if (letter.is_letter)
			add_to_word(&word, letter.code);
		if (letter.is_alone)
			end_word(search, &word, on_word);
		was_upper = letter.is_upper;
	}
	end_word(search, &word, on_word);
}

/* Of the query. */
static void take_query_word(struct search *search, const struct word *word)
{
	struct query *query = &search->query;

	for (size_t i = 0; i < query->count; i++)
		if (query->words[i].n == word->n &&
		    memcmp(query->words[i].text, word->text, word->n) == 0)
			return;
	if (query->count < WORDS_MAX)
		query->words[query->count++] = *word;
}

/* Of a tool. */
static void count_word(struct search *search, const struct word *word)
{
	const struct query *query = &search->query;

	search->entry->length += search->weight;
	for (size_t i = 0; i < query->count; i++) {
		const struct word *asked = &query->words[i];

		if (asked->n > word->n || memcmp(asked->text, word->text, asked->n) != 0)
			continue;
		if (asked->n == word->n)
			search->entry->weights[i] += search->weight;
		else if (asked->n >= PREFIX_MIN)
			search->entry->weights[i] += search->weight / 2;
	}
}

/* ---- tools ---- */

static void read_text(struct search *search, struct slice text, double weight)
{
	bool is_cut = text.n > search->left;

	if (is_cut)
		text.n = search->left;
	while (is_cut && text.n > 0 && (text.p[text.n] & 0xc0) == 0x80)
		text.n--; /* not in the middle of a character */
	search->left -= is_cut ? search->left : text.n;
	search->weight = weight;
	read_words(search, text, count_word);
}

static void read_string(struct search *search, struct json value, double weight)
{
	search->room.len = 0;
	if (value.type == JSON_STRING && scan_decode_string(value, &search->room) == 0)
		read_text(search, buf_slice(&search->room), weight);
}

static int read_argument(struct slice name, struct json value, void *arg)
{
	struct search *search = arg;

	read_text(search, name, 1);
	read_string(search, scan_member(value.text, SLICE_LIT("description")), 1);
	return search->left > 0 ? 0 : -1;
}

static int add_tool(struct slice element, void *arg)
{
	struct search *search = arg;

	if (scan_type(element) == JSON_OBJECT)
		search->entries[search->count++] = (struct entry){ .json = element };
	return search->count < TOOLS_MAX ? 0 : -1;
}

static void read_tool(struct search *search, struct entry *entry)
{
	static const char *const arguments[] = { "inputSchema", "properties" };
	static const char *const title[] = { "annotations", "title" };
	struct slice element = entry->json;

	search->entry = entry;
	search->left = READ_BYTES / search->count;
	read_string(search, scan_member(element, SLICE_LIT("name")), 4);
	read_string(search, scan_member(element, SLICE_LIT("title")), 3);
	read_string(search, scan_path(element, title, 2), 3);
	read_string(search, scan_member(element, SLICE_LIT("description")), 2);
	scan_members(scan_path(element, arguments, 2).text, read_argument, search);
	search->length += entry->length;
}

/* ---- the best ---- */

static void rank(struct search *search)
{
	double usual = search->count > 0 ? search->length / (double)search->count : 1;
	double count = (double)search->count;

	for (size_t e = 0; e < search->count; e++)
		for (size_t i = 0; i < search->query.count; i++)
			search->query.tools[i] += search->entries[e].weights[i] > 0;
	for (size_t e = 0; e < search->count; e++) {
		struct entry *entry = &search->entries[e];
		double share = usual > 0 ? entry->length / usual : 1;

		for (size_t i = 0; i < search->query.count; i++) {
			double has = search->query.tools[i], weight = entry->weights[i];

			if (weight > 0)
				entry->score += log(1 + (count - has + 0.5) / (has + 0.5)) *
						weight * (K1 + 1) /
						(weight + K1 * (1 - B + B * share));
		}
	}
}

/* The best first; of equals, the one that is listed first. */
static int compare(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->json.p < b->json.p ? -1 : 1;
}

static size_t append_best(const struct search *search, size_t most, struct buf *out)
{
	size_t count = 0;

	buf_append_str(out, "{\"tools\":[");
	while (count < most && count < search->count && search->entries[count].score > 0) {
		if (count > 0)
			buf_append_char(out, ',');
		buf_append_slice(out, search->entries[count++].json);
	}
	buf_append_str(out, "]}");
	return count;
}

static void append_text(struct slice text, bool is_error, struct buf *out)
{
	buf_append_str(out, "{\"content\":[{\"type\":\"text\",\"text\":");
	write_string(out, text);
	buf_printf(out, "}]%s}", is_error ? ",\"isError\":true" : "");
}

struct slice search_arguments(const struct envelope *env)
{
	struct json arguments = scan_member(env->params.text, SLICE_LIT("arguments"));

	return arguments.type == JSON_OBJECT && arguments.text.n <= ARGUMENTS_BYTES ?
		       arguments.text :
		       SLICE_LIT("{}");
}

void search_append_found(struct slice result, struct slice arguments, struct buf *out)
{
	struct search search = { .count = 0 };
	struct json query = scan_member(arguments, SLICE_LIT("query"));
	at_end(buf_fini) struct buf text = { 0 };
	long long most = FOUND_USUAL;

	if (scan_int(scan_member(arguments, SLICE_LIT("limit")), &most) < 0 || most < 1)
		most = FOUND_USUAL;
	if (query.type != JSON_STRING || scan_decode_string(query, &text) < 0) {
		append_text(SLICE_LIT("find_tool needs `query`: a few words that say what the tool "
				      "should do"),
			    true, out);
		return;
	}
	read_words(&search, buf_slice(&text), take_query_word);
	search.entries = mem_alloc(TOOLS_MAX * sizeof(*search.entries));
	aside_open();
	(void)!scan_array(scan_member(result, SLICE_LIT("tools")).text, SIZE_MAX, add_tool, &search,
			  NULL);
	for (size_t i = 0; i < search.count; i++)
		read_tool(&search, &search.entries[i]);
	rank(&search);
	qsort(search.entries, search.count, sizeof(*search.entries), compare);
	text.len = 0;
	if (append_best(&search, (size_t)(most < FOUND_MOST ? most : FOUND_MOST), &text) == 0) {
		text.len = 0;
		buf_printf(&text, "None of %zu tools fits these words; try others.", search.count);
	}
	append_text(buf_slice(&text), false, out);
	aside_close();
	buf_fini(&search.room);
	free(search.entries);
}

bool search_unwrap(const struct envelope *env, struct buf *out)
{
	struct json arguments = scan_member(env->params.text, SLICE_LIT("arguments"));
	struct json name = scan_member(arguments.text, SLICE_LIT("name"));
	struct json own = scan_member(arguments.text, SLICE_LIT("arguments"));
	const struct splice_edit edits[] = {
		{ env->name.text, name.text },
		{ arguments.text, own.type == JSON_OBJECT ? own.text : SLICE_LIT("{}") },
	};
	bool is_reversed = arguments.text.p < env->name.text.p;
	const struct splice_edit ordered[] = { edits[is_reversed], edits[!is_reversed] };

	if (name.type != JSON_STRING)
		return false;
	splice_append(out, env->text, ordered, ARRAY_LEN(ordered), 0);
	return true;
}
