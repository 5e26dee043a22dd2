/* SPDX-License-Identifier: Apache-2.0 */
#include "process/pin_memory.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/pins.h"

/* ---- what servers say about each other's tools ---- */

void pin_shadows_find(const struct server *servers, size_t count, shadow_fn *on_shadow, void *arg)
{
	at_end(mem_free) struct shadow_side *sides = mem_zalloc((count + 1) * sizeof(*sides));
	size_t there = 0;

	for (size_t i = 0; i < count; i++)
		if (servers[i].conf.name != NULL && !servers[i].is_retired &&
		    !servers[i].pins.follows)
			sides[there++] =
				(struct shadow_side){ servers[i].conf.name, &servers[i].pins };
	shadows_find(sides, there, on_shadow, arg);
}

/* A hash of all names involved; never 0. */
static uint64_t key_of(const struct shadow *shadow)
{
	uint64_t key = shadow->side->pins->seed + shadow->is_mention;

	key = text_hash_part(key, slice_str(shadow->side->server));
	key = text_hash_part(key, slice_str(shadow->other->server));
	key = text_hash_part(key, shadow->pin->folded);
	return text_hash_part(key, shadow->tool->folded);
}

static void tell(const struct shadow *shadow, void *arg)
{
	struct map *told = arg;
	uint64_t key = key_of(shadow);

	if (told->count >= SHADOWS_MAX || map_find(told, key) != NULL)
		return;
	map_insert(told, key, told);
	counter_add(COUNTER_TOOLS_SHADOWED);
	LOG(TOOL_SHADOWED, LOG_STR("server", shadow->side->server),
	    LOG_STR("kind", pin_kind_name(shadow->pin->kind)), LOG_SLICE("name", shadow->pin->name),
	    LOG_STR("by", shadow->is_mention ? "description" : "name"),
	    LOG_STR("other", shadow->other->server), LOG_SLICE("tool", shadow->tool->name));
}

/* ---- the memory ---- */

#define SAVES_A_SECOND 16 /* of first lists; more of them wait for GATHER_MS as others do */
#define GATHER_MS 300

/* ---- reading ---- */

/* A retired server keeps the pins that it has: they are neither read nor saved. */
static bool has_pins(const struct server *server)
{
	return server->conf.name != NULL && server->conf.pin != PIN_OFF && !server->is_retired;
}

static struct server *find_server(const struct pin_memory *memory, struct slice name)
{
	for (size_t i = 0; i < memory->server_count; i++)
		if (has_pins(&memory->servers[i]) &&
		    slice_is_equal(slice_str(memory->servers[i].conf.name), name))
			return &memory->servers[i];
	return NULL;
}

static int read_line(struct pin_memory *memory, struct slice line)
{
	struct slice rest = line;
	struct server *server = find_server(memory, slice_cut(&rest, '\t'));

	if (server != NULL && server->pins.follows) /* what was approved once comes first */
		pins_forget(&server->pins);
	if (server != NULL && pin_record_read(&server->pins, rest) < 0) {
		pins_lose(&server->pins);
		return -1;
	}
	if (server != NULL)
		return 0;
	buf_append_slice(&memory->others, line);
	buf_append_char(&memory->others, '\n');
	return 0;
}

/* Returns how many malformed lines were left out, or -1 if text is not in this format at all. */
static int64_t read_lines(struct pin_memory *memory, struct slice text)
{
	static const struct slice first = SLICE(PIN_MEMORY_FIRST_LINE);
	int64_t bad = 0;

	if (!slice_has_prefix(text, first) || text.p[text.n - 1] != '\n')
		return -1;
	text = slice_of(text.p + first.n, text.n - first.n);
	while (text.n > 0)
		bad += read_line(memory, slice_cut(&text, '\n')) < 0;
	return bad;
}

/* Nor may what a server without pins lists be a first sight once it has pins. */
static void lose_all(struct pin_memory *memory)
{
	struct pins lost;

	pins_init(&lost);
	pins_lose(&lost);
	buf_fini(&memory->others);
	for (size_t i = 0; i < memory->server_count; i++) {
		struct server *server = &memory->servers[i];

		if (has_pins(server)) {
			pins_forget(&server->pins);
			pins_lose(&server->pins);
		} else if (server->conf.name != NULL && !server->is_retired) {
			pin_record_write(&lost, server->conf.name, false, &memory->others);
		}
	}
	pins_fini(&lost);
}

/* Nobody else writes the file now: the previous gateway has ended. */
static void load(struct pin_memory *memory)
{
	struct slice text = { NULL, 0 };
	bool is_valid =
		memory->file == NULL || halves_read(memory->file, PIN_MEMORY_TEXT_BYTES, &text);

	if (is_valid && (text.n == 0 || read_lines(memory, text) == 0))
		return;
	LOG(PINS_LOST, LOG_INT("bytes", text.n));
	lose_all(memory);
}

/* ---- writing ---- */

static uint64_t count_changes(const struct pin_memory *memory)
{
	uint64_t changes = 0;

	for (size_t i = 0; i < memory->server_count; i++)
		changes += has_pins(&memory->servers[i]) ? memory->servers[i].pins.changes : 0;
	return changes;
}

static void write_all(const struct pin_memory *memory, bool with_texts, struct buf *out)
{
	buf_append_str(out, PIN_MEMORY_FIRST_LINE);
	for (size_t i = 0; i < memory->server_count; i++)
		if (has_pins(&memory->servers[i]))
			pin_record_write(&memory->servers[i].pins, memory->servers[i].conf.name,
					 with_texts, out);
	buf_append_slice(out, buf_slice(&memory->others));
}

static void save(struct pin_memory *memory)
{
	at_end(buf_fini) struct buf text = { 0 };

	memory->changes = count_changes(memory);
	write_all(memory, true, &text);
	if (text.len > PIN_MEMORY_TEXT_BYTES) {
		text.len = 0;
		write_all(memory, false, &text);
	}
	if (text.len <= PIN_MEMORY_TEXT_BYTES) {
		memcpy(halves_begin(memory->file, PIN_MEMORY_TEXT_BYTES), text.data, text.len);
		halves_end(memory->file, PIN_MEMORY_TEXT_BYTES, text.len);
		spawner_note_text(memory->spawner, IPC_TEXT_PINS);
	} else if (!memory->is_too_long) {
		memory->is_too_long = true;
		LOG(PINS_UNSAVED, LOG_STR("reason", "they are too many"));
	}
}

static void save_and_look(struct pin_memory *memory)
{
	save(memory);
	pin_shadows_find(memory->servers, memory->server_count, tell, &memory->shadows_told);
}

static void on_saving(struct timer *timer)
{
	save_and_look(container_of(timer, struct pin_memory, saving));
}

void pin_memory_save(struct pin_memory *memory)
{
	if (memory == NULL || memory->file == NULL)
		return;
	timer_stop(&memory->saving);
	save_and_look(memory);
}

/* A server may have many pages, and change them with each request. */
static bool may_save_at_once(struct pin_memory *memory)
{
	uint64_t second = clock_now_ms() / 1000 + 1;

	if (memory->second != second)
		memory->saves = 0;
	memory->second = second;
	return memory->saves++ < SAVES_A_SECOND;
}

void pin_memory_note(struct pin_memory *memory, bool is_first_list)
{
	if (memory == NULL || memory->file == NULL || memory->changes == count_changes(memory))
		return;
	if (is_first_list && may_save_at_once(memory))
		save(memory);
	if (!timer_is_running(&memory->saving))
		timer_start(memory->loop, &memory->saving, GATHER_MS);
}

/* ---- another configuration ---- */

void pin_memory_leave(struct pin_memory *memory, struct buf *text)
{
	CHECK(text->len == 0);
	write_all(memory, true, text);
}

void pin_memory_return(struct pin_memory *memory, size_t server_count, struct slice text)
{
	bool is_unsaved = false; /* what was followed is pinned now */
	int64_t bad;

	buf_fini(&memory->others);
	memory->server_count = server_count;
	for (size_t i = 0; i < server_count; i++) {
		struct server *server = &memory->servers[i];

		if (server->is_retired || server->conf.name == NULL)
			continue;
		if (!server->pins.follows)
			pins_forget(&server->pins);
		server->pin_memory = memory;
	}
	bad = read_lines(memory, text);
	CHECK(bad >= 0);
	if (bad > 0)
		LOG(PINS_REFUSED, LOG_INT("lines", (uint64_t)bad));
	for (size_t i = 0; i < server_count; i++) {
		struct server *server = &memory->servers[i];

		if (server->conf.pin == PIN_OFF)
			continue;
		is_unsaved = is_unsaved || server->pins.follows;
		server->pins.follows = false;
	}
	memory->changes = count_changes(memory);
	if (is_unsaved)
		pin_memory_save(memory);
}

/* ---- beginning and end ---- */

void pin_memory_init(struct pin_memory *memory, struct loop *loop, struct spawner *spawner, int fd,
		     struct server *servers, size_t server_count)
{
	void *file = mmap(NULL, PIN_MEMORY_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*memory = (struct pin_memory){ .file = file != MAP_FAILED ? file : NULL,
				       .spawner = spawner,
				       .servers = servers,
				       .server_count = server_count,
				       .loop = loop };
	timer_init(&memory->saving, on_saving);
	load(memory);
	memory->changes = count_changes(memory);
	for (size_t i = 0; i < server_count; i++)
		servers[i].pin_memory = memory;
}

void pin_memory_fini(struct pin_memory *memory)
{
	if (timer_is_running(&memory->saving))
		save(memory);
	timer_stop(&memory->saving);
	buf_fini(&memory->others);
	map_fini(&memory->shadows_told);
	if (memory->file != NULL)
		munmap(memory->file, PIN_MEMORY_FILE_BYTES);
}
