/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, base64url, UTF-8, comparison. */
#include "base/text.h"

#include <stdio.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

int text_parse_u64(struct slice s, uint64_t *value_r)
{
	uint64_t value = 0;

	if (s.n == 0)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -1;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value))
			return -1;
	}
	*value_r = value;
	return 0;
}

size_t text_format_u64(uint64_t value, char *out)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char digits[20];
	size_t at = sizeof(digits);

	for (; value >= 10; value /= 100) {
		at -= 2;
		memcpy(digits + at, pairs + 2 * (value % 100), 2);
	}
	if (value > 0 || at == sizeof(digits))
		digits[--at] = (char)('0' + value);
	memcpy(out, digits + at, sizeof(digits) - at);
	return sizeof(digits) - at;
}

size_t text_format_hex(uint64_t value, size_t least, char *out)
{
	size_t digits = value == 0 ? 1 : (size_t)(67 - __builtin_clzll(value)) / 4;

	CHECK(least <= 16);
	if (digits < least)
		digits = least;
	for (size_t i = digits; i-- > 0; value >>= 4)
		out[i] = "0123456789abcdef"[value & 0xF];
	return digits;
}

const char *text_format_age(uint64_t ms, char text_r[TEXT_AGE_BYTES])
{
	unsigned long long s = ms / 1000;

	if (s < 60)
		snprintf(text_r, TEXT_AGE_BYTES, "%llus", s);
	else if (s < 3600)
		snprintf(text_r, TEXT_AGE_BYTES, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text_r, TEXT_AGE_BYTES, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		snprintf(text_r, TEXT_AGE_BYTES, "%llud%02lluh", s / 86400, s / 3600 % 24);
	return text_r;
}

size_t text_base64url(const void *data, size_t size, char *out)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const unsigned char *in = data;
	unsigned int bits = 0;
	unsigned int held = 0;
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		held = held << 8 | in[i];
		for (bits += 8; bits >= 6; bits -= 6)
			out[n++] = alphabet[held >> (bits - 6) & 63];
		held &= (1u << bits) - 1;
	}
	if (bits > 0)
		out[n++] = alphabet[held << (6 - bits) & 63];
	return n;
}

static int base64url_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

int text_from_base64url(struct slice text, void *out, size_t *size_r)
{
	unsigned char *to = out;
	unsigned int bits = 0;
	unsigned int held = 0;
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		int value = base64url_value(text.p[i]);

		if (value < 0)
			return -1;
		held = (held << 6 | (unsigned int)value) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		to[n++] = (unsigned char)(held >> bits);
	}
	*size_r = n;
	return bits >= 6 || (held & ((1u << bits) - 1)) != 0 ? -1 : 0;
}

void text_to_hex(const void *bytes, size_t size, char *text_r)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = bytes;

	for (size_t i = 0; i < size; i++) {
		*text_r++ = digits[from[i] >> 4];
		*text_r++ = digits[from[i] & 0xF];
	}
	*text_r = '\0';
}

int text_from_hex(struct slice text, void *out, size_t size)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	unsigned char *bytes = out;

	if (text.n != 2 * size)
		return -1;
	memset(out, 0, size);
	for (size_t i = 0; i < text.n; i++) {
		const char *digit = memchr(digits, text.p[i], sizeof(digits) - 1);

		if (digit == NULL)
			return -1;
		bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (digit - digits) % 16);
	}
	return 0;
}

static bool text_is_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

size_t text_utf8_length(struct slice s)
{
	const unsigned char *u = (const unsigned char *)s.p;

	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xC2 || s.n < 2 || !text_is_continuation(s.p[1]))
		return 0;
	if (u[0] < 0xE0)
		return 2;
	if (s.n < 3 || !text_is_continuation(s.p[2]))
		return 0;
	if (u[0] < 0xF0) {
		bool is_overlong = u[0] == 0xE0 && u[1] < 0xA0;
		bool is_surrogate = u[0] == 0xED && u[1] >= 0xA0;

		return is_overlong || is_surrogate ? 0 : 3;
	}
	if (u[0] > 0xF4 || s.n < 4 || !text_is_continuation(s.p[3]))
		return 0;
	return (u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] >= 0x90) ? 0 : 4;
}

/* 16 bytes examined at once; the compiler maps this to whatever the machine has. */
typedef signed char text_block __attribute__((vector_size(16)));
#define BLOCK (sizeof(text_block))
#define LARGE_BLOCK (4 * BLOCK)
#define WIDE_BLOCK 32 /* where the processor has AVX2 */

/* Bytes beyond ASCII are negative here. */
static inline bool is_plain(signed char byte, char other)
{
	return byte >= ' ' && byte != 0x7F && byte != '\\' && byte != other;
}

/* is_plain for each byte of a block: the result is nonzero where a byte is not plain. */
static inline text_block find_foreign(const char *p, char other)
{
	text_block bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return (bytes < ' ') | (bytes == 0x7F) | (bytes == '\\') | (bytes == (signed char)other);
}

static inline bool is_zero(text_block block)
{
	uint64_t halves[2];

	memcpy(halves, &block, sizeof(halves));
	return (halves[0] | halves[1]) == 0;
}

static inline bool is_plain_block(const char *p, char other)
{
	return is_zero(find_foreign(p, other));
}

static inline bool is_plain_large_block(const char *p, char other)
{
	return is_zero(find_foreign(p, other) | find_foreign(p + BLOCK, other) |
		       find_foreign(p + 2 * BLOCK, other) | find_foreign(p + 3 * BLOCK, other));
}

#ifdef __x86_64__
/*
 * Nonzero in each of 32 bytes that is not plain. With 1 added, bytes beyond ASCII and 0x7F are
 * negative.
 */
__attribute__((target("avx2"))) static inline __m256i find_foreign_wide(const char *p, char other)
{
	__m256i bytes = _mm256_loadu_si256((const __m256i_u *)p);
	__m256i next = _mm256_add_epi8(bytes, _mm256_set1_epi8(1));
	__m256i special = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\')),
					  _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(other)));

	return _mm256_or_si256(special, _mm256_cmpgt_epi8(_mm256_set1_epi8(' ' + 1), next));
}

__attribute__((target("avx2"))) static inline bool is_plain_wide(const char *p, char other)
{
	__m256i first = _mm256_or_si256(find_foreign_wide(p, other),
					find_foreign_wide(p + WIDE_BLOCK, other));
	__m256i rest = _mm256_or_si256(find_foreign_wide(p + 2 * WIDE_BLOCK, other),
				       find_foreign_wide(p + 3 * WIDE_BLOCK, other));

	return _mm256_movemask_epi8(_mm256_or_si256(first, rest)) == 0;
}

/*
 * For at least one block. The last block is read aligned to the end, so it overlaps bytes already
 * examined.
 */
__attribute__((target("avx2"))) static size_t plain_length_wide(struct slice s, char other)
{
	size_t n = 0, last = s.n - WIDE_BLOCK;

	CHECK(s.n >= WIDE_BLOCK);
	while (s.n - n >= 4 * WIDE_BLOCK && is_plain_wide(s.p + n, other))
		n += 4 * WIDE_BLOCK;
	while (n < s.n) {
		size_t at = n < last ? n : last;
		int foreign = _mm256_movemask_epi8(find_foreign_wide(s.p + at, other));

		if (foreign != 0)
			return at + (size_t)__builtin_ctz((unsigned int)foreign);
		n = at + WIDE_BLOCK;
	}
	return s.n;
}
#endif

/* Length of the plain prefix: printable ASCII without backslashes and without `other`. */
static inline size_t plain_length(struct slice s, char other)
{
	size_t n = 0;

#ifdef __x86_64__
	if (s.n >= WIDE_BLOCK && __builtin_cpu_supports("avx2"))
		return plain_length_wide(s, other);
#endif

	while (s.n - n >= LARGE_BLOCK && is_plain_large_block(s.p + n, other))
		n += LARGE_BLOCK;
	while (s.n - n >= BLOCK && is_plain_block(s.p + n, other))
		n += BLOCK;
	/*
	 * A rest shorter than a block is examined as a whole block that overlaps bytes already
	 * examined.
	 */
	if (n >= BLOCK && s.n - n < BLOCK && is_plain_block(s.p + s.n - BLOCK, other))
		return s.n;
	while (n < s.n && is_plain((signed char)s.p[n], other))
		n++;
	return n;
}

size_t text_plain_length(struct slice s)
{
	return plain_length(s, '\\');
}

size_t text_verbatim_length(struct slice s)
{
	return plain_length(s, '"');
}

bool text_is_b64token(struct slice s)
{
	static const bool allowed[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
		['-'] = true,         ['.'] = true,         ['_'] = true,
		['~'] = true,         ['+'] = true,         ['/'] = true,
	};
	size_t i = 0;

	while (i < s.n && allowed[(unsigned char)s.p[i]])
		i++;
	if (i == 0)
		return false;
	while (i < s.n && s.p[i] == '=')
		i++;
	return i == s.n;
}

bool text_is_utf8(struct slice s)
{
	while (s.n > 0) {
		size_t n = text_utf8_length(s);

		if (n == 0)
			return false;
		s = slice_of(s.p + n, s.n - n);
	}
	return true;
}

/* What some reader turns into an ASCII letter when it compares without case. */
static const struct {
	struct slice written;
	char letter;
} foreign_letters[] = {
	{ SLICE("\xC5\xBF"), 's' },     /* U+017F long s */
	{ SLICE("\xE2\x84\xAA"), 'k' }, /* U+212A Kelvin sign */
	{ SLICE("\xC4\xB0"), 'i' },     /* U+0130 capital i with dot */
	{ SLICE("\xC4\xB1"), 'i' },     /* U+0131 dotless i */
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Cuts the first letter off *rest_r and returns it in lower case; of others the first byte. */
static char cut_letter(struct slice *rest_r)
{
	char c = *rest_r->p;
	size_t length = 1;

	for (size_t i = 0; (unsigned char)c >= 0x80 && i < ARRAY_LEN(foreign_letters); i++) {
		if (slice_has_prefix(*rest_r, foreign_letters[i].written)) {
			c = foreign_letters[i].letter;
			length = foreign_letters[i].written.n;
		}
	}
	CHECK(length <= rest_r->n);
	*rest_r = slice_of(rest_r->p + length, rest_r->n - length);
	return lower(c);
}

bool text_folds_to(struct slice name, struct slice known)
{
	for (size_t i = 0; i < known.n; i++) {
		if (name.n == 0 || cut_letter(&name) != lower(known.p[i]))
			return false;
	}
	return name.n == 0;
}

bool text_is_claim(struct slice s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.n == 0 || s.n > TEXT_CLAIM_MAX || !text_is_utf8(s))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool is_c1 = p[i] == 0xc2 && p[i + 1] < 0xa0; /* UTF-8: another byte follows 0xc2 */

		if (p[i] < 0x20 || p[i] == 0x7f || is_c1)
			return false;
	}
	return true;
}

#define FNV_PRIME 1099511628211u

uint64_t text_hash(uint64_t hash, struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * FNV_PRIME;
	return hash;
}

uint64_t text_hash_part(uint64_t hash, struct slice s)
{
	return (text_hash(hash, s) ^ s.n) * FNV_PRIME;
}

bool text_is_equal_secret(struct slice a, struct slice b)
{
	uint64_t different = 0, left, right;
	size_t i = 0;

	if (a.n != b.n)
		return false;
	for (; a.n - i >= sizeof(left); i += sizeof(left)) {
		memcpy(&left, a.p + i, sizeof(left));
		memcpy(&right, b.p + i, sizeof(right));
		different |= left ^ right;
	}
	for (; i < a.n; i++)
		different |= (unsigned char)(a.p[i] ^ b.p[i]);
	return different == 0;
}

#define DISTANCE_NAME_MAX 64

size_t text_distance(struct slice a, struct slice b, size_t limit)
{
	size_t row[DISTANCE_NAME_MAX + 1];

	CHECK(limit < SIZE_MAX);
	if (a.n > DISTANCE_NAME_MAX || b.n > DISTANCE_NAME_MAX)
		return limit + 1;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t change = diagonal + (a.p[i - 1] != b.p[j - 1]);
			size_t either = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = change < either ? change : either;
		}
	}
	return row[b.n] <= limit ? row[b.n] : limit + 1;
}

bool text_is_nearer(struct slice written, struct slice candidate, size_t *distance)
{
	size_t limit = 1 + written.n / 3; /* a name with more differing letters was hardly meant */
	/* A prefix of a name counts as one wrong letter. */
	size_t found = written.n > 2 && slice_has_prefix(candidate, written) ?
			       1 :
			       text_distance(written, candidate, limit);

	if (found > limit || found >= *distance)
		return false;
	*distance = found;
	return true;
}

/*
 * After a mismatch only the last '*' takes one more byte: what earlier stars matched need not
 * change.
 */
bool text_fits_pattern(struct slice text, struct slice pattern)
{
	size_t t = 0, p = 0;
	size_t star = SIZE_MAX; /* the last '*' seen, and the position in the text at that time */
	size_t star_text = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			star_text = t;
		} else if (p < pattern.n && pattern.p[p] == text.p[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}
