/* SPDX-License-Identifier: Apache-2.0 */
/* Does not judge whether a value is legal where it stands; that is scan. */
#include "jsonrpc/value.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

#define INTEGER_BYTES_MAX 64 /* of a number that may be an integer */

/* What stands behind the e, if anything does. */
static int read_exponent(struct slice text, long long *exponent_r)
{
	bool has_plus = text.n > 0 && text.p[0] == '+';
	struct json exponent = { .type = JSON_NUMBER, .text = text };

	*exponent_r = 0;
	if (has_plus)
		exponent.text = slice_of(text.p + 1, text.n - 1);
	return text.n == 0 ? 0 : scan_int(exponent, exponent_r);
}

/* Appends `count` zeros, but not to a zero. Returns 0, or -1 if the number does not fit. */
static int shift(long long *number, long long count)
{
	for (; count > 0 && *number != 0; count--) {
		if (__builtin_mul_overflow(*number, 10, number))
			return -1;
	}
	return 0;
}

int value_read_integer(struct json value, long long *number_r)
{
	char digits[INTEGER_BYTES_MAX];
	struct slice rest = value.text, whole;
	struct json integer = { .type = JSON_NUMBER, .text = { digits, 0 } };
	long long point; /* how many digits stand before it */
	long long exponent;

	if (scan_int(value, number_r) == 0)
		return 0;
	if (value.type != JSON_NUMBER || value.text.n > sizeof(digits))
		return -1;
	whole = slice_cut(&rest, memchr(rest.p, 'E', rest.n) != NULL ? 'E' : 'e');
	if (read_exponent(rest, &exponent) < 0 || exponent < -INTEGER_BYTES_MAX ||
	    exponent > INTEGER_BYTES_MAX)
		return -1;
	rest = whole;
	whole = slice_cut(&rest, '.');
	point = (long long)whole.n + exponent;
	memcpy(digits, whole.p, whole.n);
	if (rest.n > 0)
		memcpy(digits + whole.n, rest.p, rest.n);
	integer.text.n = whole.n + rest.n;
	CHECK(integer.text.n > 0 && integer.text.n <= sizeof(digits));
	/* What stands behind the point may only be zeros. */
	for (; integer.text.n > 1 && (long long)integer.text.n > point; integer.text.n--)
		if (digits[integer.text.n - 1] != '0')
			return -1;
	point -= (long long)integer.text.n;
	if (scan_int(integer, number_r) < 0 || (point < 0 && *number_r != 0))
		return -1;
	return shift(number_r, point);
}

uint64_t value_own_id(struct json value)
{
	struct buf room = { 0 };
	struct slice digits;
	long long number;
	uint64_t id = 0;

	if (value.type == JSON_NUMBER) {
		if (value_read_integer(value, &number) < 0)
			return 0;
		return number > 0 ? (uint64_t)number : 0;
	}
	if (scan_read_string(value, &room, &digits) == 0 && text_parse_u64(digits, &id) < 0)
		id = 0;
	buf_fini(&room);
	return id;
}

#define SPELLING_MAX 6 /* bytes that an escape takes for one */
#define NUMBER_MAX 32  /* bytes of any spelling of an integer that is read */

bool value_is_same_id(struct slice left, struct slice right)
{
	struct buf room_of_a = { 0 }, room_of_b = { 0 };
	struct slice text_a, text_b;
	long long number_a, number_b;
	struct json a, b;
	bool is_same;

	if (slice_is_equal(left, right))
		return true;
	/* Who names an id may make it long, and have it compared with many. */
	if (left.n > SPELLING_MAX * right.n + NUMBER_MAX ||
	    right.n > SPELLING_MAX * left.n + NUMBER_MAX)
		return false;
	a = scan_value(left);
	b = scan_value(right);
	if (a.type == JSON_NUMBER)
		return value_read_integer(a, &number_a) == 0 &&
		       value_read_integer(b, &number_b) == 0 && number_a == number_b;
	is_same = scan_read_string(a, &room_of_a, &text_a) == 0 &&
		  scan_read_string(b, &room_of_b, &text_b) == 0 && slice_is_equal(text_a, text_b);
	buf_fini(&room_of_a);
	buf_fini(&room_of_b);
	return is_same;
}
