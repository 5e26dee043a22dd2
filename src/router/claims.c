/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipe is written whole before anybody reads it, so nobody waits. One that lacks something is the keeper's to
 * refuse: it looks for itself.
 */
#include "router/claims.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "obs/log.h"
#include "session/principal.h"

bool claims_are_there(const struct backend_conf *conf, const struct principal *principal)
{
	for (size_t i = 0; i < conf->claim_count; i++) {
		if (principal_claim(principal, conf->claims[i]) != NULL)
			continue;
		LOG(CLAIM_MISSING, LOG_STR("server", conf->name),
		    LOG_SLICE("claim", conf->claims[i]));
		return false;
	}
	return true;
}

static int write_whole(struct slice text)
{
	int fds[2];
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	n = write(fds[1], text.p, text.n);
	close(fds[1]);
	if (n == (ssize_t)text.n)
		return fds[0];
	close(fds[0]);
	return -1;
}

int claims_open(const struct backend_conf *conf, const struct principal *principal)
{
	struct buf text = { 0 };
	int fd;

	if (conf->claim_count == 0)
		return -1;
	for (size_t i = 0; i < conf->claim_count; i++) {
		const char *value = principal_claim(principal, conf->claims[i]);

		if (value == NULL)
			continue;
		buf_append_slice(&text, conf->claims[i]);
		buf_append_char(&text, '\0');
		buf_append(&text, value, strlen(value) + 1);
	}
	fd = write_whole(buf_slice(&text));
	buf_fini(&text);
	return fd;
}
