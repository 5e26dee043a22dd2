/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/denial_line.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/text.h"

#define TEXT_MAX 2048 /* an issuer or a name, as orders have them at most */
#define CHANGED_DIGITS 16
#define UNTIL_DIGITS 20

static bool can_be_told(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20)
			return false;
	return text.n > 0 && text.n <= TEXT_MAX;
}

bool denial_line_append(struct buf *out, const struct denial *denial)
{
	if (!can_be_told(denial->issuer) || !can_be_told(denial->name))
		return false;
	buf_printf(out, "%0*" PRIu64 " %d %0*" PRIu64 "\t%s\t", CHANGED_DIGITS, denial->changed_ms,
		   !denial->is_lifted, UNTIL_DIGITS, denial->until_ms, denial_by_name(denial->by));
	buf_append_slice(out, denial->issuer);
	buf_append_char(out, '\t');
	buf_append_slice(out, denial->name);
	buf_append_char(out, '\n');
	return true;
}

/* Fixed width: texts are compared as numbers would be. */
static bool read_digits(struct slice text, size_t digits, uint64_t *number_r)
{
	return text.n == digits && text_parse_u64(text, number_r) == 0;
}

bool denial_line_read(struct slice line, struct denial *denial_r)
{
	struct slice value = slice_cut(&line, '\t'), by = slice_cut(&line, '\t');
	struct slice changed = slice_cut(&value, ' '), effect = slice_cut(&value, ' ');

	*denial_r = (struct denial){ .issuer = slice_cut(&line, '\t'), .name = line };
	while (denial_r->by < DENIAL_BY_COUNT &&
	       !slice_is_equal(by, slice_str(denial_by_name(denial_r->by))))
		denial_r->by++;
	denial_r->is_lifted = slice_is_equal(effect, SLICE_LIT("0"));
	return denial_r->by < DENIAL_BY_COUNT && can_be_told(denial_r->issuer) &&
	       can_be_told(denial_r->name) &&
	       (denial_r->is_lifted || slice_is_equal(effect, SLICE_LIT("1"))) &&
	       read_digits(changed, CHANGED_DIGITS, &denial_r->changed_ms) &&
	       denial_r->changed_ms <= clock_wall_ms() + DENIAL_AHEAD_MS &&
	       read_digits(value, UNTIL_DIGITS, &denial_r->until_ms) &&
	       (denial_r->until_ms <= INT64_MAX || denial_r->until_ms == UINT64_MAX);
}
