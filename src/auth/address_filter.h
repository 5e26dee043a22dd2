/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses a fetch may connect to. Judged on the address that the socket connects to, so that a name
 * that resolves differently later (rebinding) gains nothing. SEC-10, AUTH-KEY-09
 */
#ifndef MCPGATED_AUTH_ADDRESS_FILTER_H
#define MCPGATED_AUTH_ADDRESS_FILTER_H

#include <stdbool.h>
#include <sys/socket.h>

struct address_filter {
	bool loopback; /* 127.0.0.0/8, ::1 */
	bool private; /* loopback too, and the private ranges of RFC 1918, RFC 4193, RFC 6598, RFC 2544 */
};

/*
 * Never: link-local (where clouds keep their metadata), the metadata addresses that lie elsewhere,
 * multicast, reserved and unspecified addresses, and anything but IPv4 and IPv6. An IPv4 address inside
 * an IPv6 one (mapped, NAT64, 6to4) is judged as itself.
 */
bool address_filter_allows(const struct address_filter *address_filter,
			   const struct sockaddr *address);

#endif
