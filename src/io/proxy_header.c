/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 is one line of text; version 2 is a signature of twelve bytes followed by a binary
 * block. Extensions of version 2 (TLV) are checked for their lengths and otherwise ignored.
 */
#include "io/proxy_header.h"

#include "base/text.h"

#define LINE_BYTES_MAX 107 /* of version 1, including the line end */
#define FIXED_BYTES 16     /* of version 2, before the addresses */

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";

static long refuse(struct error *err, const char *why)
{
	return error_set(err, ERROR_SYNTAX, "no correct PROXY header: %s", why);
}

/* ---- version 1 ---- */

/* A decimal number without leading zeros; otherwise -1. */
static long parse_port(struct slice text)
{
	uint64_t port;

	if (text.n == 0 || (text.n > 1 && text.p[0] == '0') || text_parse_u64(text, &port) != 0 ||
	    port > 65535)
		return -1;
	return (long)port;
}

/* `TCP4 SOURCE DESTINATION PORT PORT`, separated by single spaces. */
static int parse_words(struct slice line, struct peer *client_r)
{
	struct slice protocol = slice_cut(&line, ' ');
	int family = slice_is_equal(protocol, SLICE_LIT("TCP4")) ? AF_INET : AF_INET6;
	struct slice source = slice_cut(&line, ' ');
	struct slice destination = slice_cut(&line, ' ');
	long source_port = parse_port(slice_cut(&line, ' '));
	unsigned char bytes[16];

	if (family == AF_INET6 && !slice_is_equal(protocol, SLICE_LIT("TCP6")))
		return -1;
	if (source_port < 0 || parse_port(line) < 0 ||
	    !peer_parse_bytes(family, destination, bytes) ||
	    !peer_parse_bytes(family, source, bytes))
		return -1;
	*client_r = peer_of_bytes(family, bytes, (uint16_t)source_port);
	return 0;
}

static long parse_line(struct slice in, struct peer *client_r, struct error *err)
{
	const char *end = memchr(in.p, '\n', in.n < LINE_BYTES_MAX ? in.n : LINE_BYTES_MAX);
	struct peer client;
	struct slice line;

	if (end == NULL)
		return in.n < LINE_BYTES_MAX ? 0 : refuse(err, "the line is too long");
	line = slice_between(in.p + 6, end);
	if (line.n == 0 || end[-1] != '\r')
		return refuse(err, "the line does not end with CR LF");
	line.n--;
	if (memchr(line.p, '\r', line.n) != NULL || memchr(line.p, '\0', line.n) != NULL)
		return refuse(err, "control characters");
	if (!slice_is_equal(line, SLICE_LIT("UNKNOWN")) &&
	    !slice_has_prefix(line, SLICE_LIT("UNKNOWN "))) {
		if (parse_words(line, &client) < 0)
			return refuse(err, "addresses or ports");
		*client_r = client;
	}
	return end + 1 - in.p;
}

/* ---- version 2 ---- */

static size_t get_u16(const unsigned char *at)
{
	return (size_t)at[0] << 8 | at[1];
}

static bool are_additions_whole(const unsigned char *at, size_t size)
{
	while (size >= 3) {
		size_t length = 3 + get_u16(at + 1);

		if (length > size)
			return false;
		at += length;
		size -= length;
	}
	return size == 0;
}

/* Size of the addresses of this family and protocol; SIZE_MAX: not a stream protocol. */
static size_t address_bytes(unsigned char family)
{
	if (family == 0x11)
		return 4;
	if (family == 0x21)
		return 16;
	if (family == 0x31)
		return 108;
	return family == 0 ? 0 : SIZE_MAX;
}

static long parse_block(struct slice in, struct peer *client_r, struct error *err)
{
	const unsigned char *at = (const unsigned char *)in.p;
	size_t addresses, size, used;

	if (in.n < FIXED_BYTES)
		return 0;
	size = get_u16(at + 14);
	addresses = address_bytes(at[13]);
	if (at[12] != 0x20 && at[12] != 0x21)
		return refuse(err, "an unknown version or command");
	if (FIXED_BYTES + size > PROXY_HEADER_BYTES_MAX)
		return refuse(err, "it is too long");
	if (in.n < FIXED_BYTES + size)
		return 0;
	if (at[12] == 0x20)
		return (long)(FIXED_BYTES + size); /* the rest is ignored */
	if (addresses == SIZE_MAX)
		return refuse(err, "an unknown family, or one that is no stream");
	used = addresses > 16 || addresses == 0 ? 2 * addresses : 2 * addresses + 4;
	if (size < used || !are_additions_whole(at + FIXED_BYTES + used, size - used))
		return refuse(err, "lengths");
	if (addresses == 4 || addresses == 16)
		*client_r = peer_of_bytes(addresses == 4 ? AF_INET : AF_INET6, at + FIXED_BYTES,
					  (uint16_t)get_u16(at + FIXED_BYTES + 2 * addresses));
	return (long)(FIXED_BYTES + size);
}

long proxy_header_parse(struct slice in, struct peer *client_r, struct error *err)
{
	size_t n = in.n < sizeof(signature) ? in.n : sizeof(signature);

	if (n == 0)
		return 0;
	if (memcmp(in.p, "PROXY ", n < 6 ? n : 6) == 0)
		return n < 6 ? 0 : parse_line(in, client_r, err);
	if (memcmp(in.p, signature, n) == 0)
		return parse_block(in, client_r, err);
	return refuse(err, "the connection begins otherwise");
}
