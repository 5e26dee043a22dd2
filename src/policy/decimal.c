/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decimal.h"

#include "base/check.h"

#define DIVISOR_DIGITS_MAX 9 /* of a number below 2^30, whose products fit */
#define DIVISOR_TWOS_MAX 29  /* how often it can be divided by two or by five */

/* DIGITS times ten to the power; no zeros at either end, no digits: zero. */
struct decimal {
	bool is_negative;
	struct slice digits;
	int64_t power;
};

static struct decimal decimal_read(struct slice text)
{
	struct decimal decimal = { .is_negative = text.p[0] == '-' };
	bool has_negative_power;
	struct slice rest = text;

	CHECK(text.n > decimal.is_negative);
	if (decimal.is_negative)
		rest = slice_of(text.p + 1, text.n - 1);
	decimal.digits = slice_cut(&rest, 'e');
	if (slice_is_equal(decimal.digits, SLICE_LIT("0")))
		decimal.digits.n = 0;
	has_negative_power = rest.n > 0 && rest.p[0] == '-';
	for (size_t i = has_negative_power; i < rest.n; i++)
		decimal.power = decimal.power * 10 + (rest.p[i] - '0');
	if (has_negative_power)
		decimal.power = -decimal.power;
	return decimal;
}

bool decimal_is_integer(struct slice number)
{
	return decimal_read(number).power >= 0;
}

static int sign_of(const struct decimal *decimal)
{
	return decimal->digits.n == 0 ? 0 : decimal->is_negative ? -1 : 1;
}

/* Neither is zero; signs do not count. */
static int compare_sizes(const struct decimal *a, const struct decimal *b)
{
	int64_t a_places = a->power + (int64_t)a->digits.n;
	int64_t b_places = b->power + (int64_t)b->digits.n;
	size_t shared = a->digits.n < b->digits.n ? a->digits.n : b->digits.n;
	int order;

	if (a_places != b_places)
		return a_places < b_places ? -1 : 1;
	order = memcmp(a->digits.p, b->digits.p, shared);
	if (order != 0)
		return order;
	return (a->digits.n > shared) - (b->digits.n > shared);
}

int decimal_compare(struct slice a_text, struct slice b_text)
{
	struct decimal a = decimal_read(a_text), b = decimal_read(b_text);
	int a_sign = sign_of(&a), b_sign = sign_of(&b);

	if (a_sign != b_sign || a_sign == 0)
		return a_sign - b_sign;
	return a_sign * compare_sizes(&a, &b);
}

bool decimal_is_divisor(struct slice number)
{
	struct decimal decimal = decimal_read(number);

	return sign_of(&decimal) > 0 && decimal.digits.n <= DIVISOR_DIGITS_MAX;
}

/*
 * The digits of a number do not end in zero: where the divisor has the greater power, it is no
 * factor. More tens than the divisor has twos or fives change nothing.
 */
bool decimal_is_multiple(struct slice number, struct slice divisor_text)
{
	struct decimal decimal = decimal_read(number), divisor = decimal_read(divisor_text);
	int64_t tens = decimal.power - divisor.power;
	uint64_t modulus = 0, rest = 0;

	CHECK(decimal_is_divisor(divisor_text));
	if (tens < 0)
		return decimal.digits.n == 0;
	for (size_t i = 0; i < divisor.digits.n; i++)
		modulus = modulus * 10 + (uint64_t)(divisor.digits.p[i] - '0');
	for (size_t i = 0; i < decimal.digits.n; i++)
		rest = (rest * 10 + (uint64_t)(decimal.digits.p[i] - '0')) % modulus;
	for (int64_t i = 0; i < tens && i < DIVISOR_TWOS_MAX; i++)
		rest = rest * 10 % modulus;
	return rest == 0;
}

bool decimal_count(struct slice number, uint32_t *count_r)
{
	struct decimal decimal = decimal_read(number);
	uint64_t count = 0;

	if (decimal.power < 0 || sign_of(&decimal) < 0)
		return false;
	for (size_t i = 0; i < decimal.digits.n && count < UINT32_MAX; i++)
		count = count * 10 + (uint64_t)(decimal.digits.p[i] - '0');
	for (int64_t i = 0; i < decimal.power && count < UINT32_MAX && count > 0; i++)
		count *= 10;
	*count_r = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return true;
}
