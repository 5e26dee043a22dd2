/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, sends, closes; never reads. One IPC_CERTIFICATE for each entry, then IPC_CERTIFICATES_END. */
#include "keeper/certificates.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/listed_path.h"
#include "io/ipc.h"
#include "obs/log.h"

#define CERTIFICATES_FILES 3 /* certificate, key, client_ca: as they are sent */

_Static_assert(CERTIFICATES_FILES <= IPC_FDS_MAX, "an entry is one message");

static size_t count_entries(const struct config *config)
{
	size_t count = 0;

	for (size_t i = 0; i < config->listen_count; i++)
		count += config->listen[i].tls_count;
	return count;
}

static void close_set(int **fds, size_t count)
{
	for (size_t i = 0; *fds != NULL && i < count * CERTIFICATES_FILES; i++) {
		if ((*fds)[i] >= 0)
			close((*fds)[i]);
	}
	free(*fds);
	*fds = NULL;
}

/* NULL is no file, which is fine. */
static int open_file(const struct listed_writers *writers, const char *path, int *fd_r,
		     struct error *err)
{
	struct error why;

	*fd_r = -1;
	if (path == NULL)
		return 0;
	*fd_r = file_open(path, writers, &why);
	return *fd_r >= 0 ? 0 : error_set(err, why.kind, "%.150s: %.150s", path, why.text);
}

static int open_entry(const struct listed_writers *writers, const struct config_tls *tls,
		      int *fds_r, struct error *err)
{
	if (open_file(writers, tls->certificate, &fds_r[0], err) < 0 ||
	    open_file(writers, tls->key, &fds_r[1], err) < 0)
		return -1;
	return open_file(writers, tls->client_ca, &fds_r[2], err);
}

static int *open_set(const struct config *config, const struct config *running, size_t count,
		     struct error *err)
{
	const struct listed_writers writers = { .running = running, .next = config };
	int *fds = mem_alloc((count * CERTIFICATES_FILES + 1) * sizeof(*fds));
	int *at = fds;

	memset(fds, 0xff, (count * CERTIFICATES_FILES + 1) * sizeof(*fds)); /* -1 */
	for (size_t i = 0; i < config->listen_count; i++) {
		for (size_t j = 0; j < config->listen[i].tls_count; j++) {
			if (open_entry(&writers, &config->listen[i].tls[j], at, err) < 0) {
				close_set(&fds, count);
				return NULL;
			}
			at += CERTIFICATES_FILES;
		}
	}
	CHECK(at == fds + count * CERTIFICATES_FILES);
	return fds;
}

int certificates_init(struct certificates *certificates, const struct config *config,
		      const struct config *running, struct error *err)
{
	CHECK(config != NULL);
	*certificates = (struct certificates){ .config = config,
					       .running = running,
					       .count = count_entries(config) };
	certificates->used = open_set(config, running, certificates->count, err);
	return certificates->used != NULL ? 0 : -1;
}

void certificates_fini(struct certificates *certificates)
{
	close_set(&certificates->used, certificates->count);
	close_set(&certificates->next, certificates->count);
}

void certificates_renew(struct certificates *certificates, const struct config *config)
{
	CHECK(count_entries(config) == certificates->count);
	certificates->config = config;
}

bool certificates_exist(const struct certificates *certificates)
{
	return certificates->count > 0;
}

void certificates_set_gateway(struct certificates *certificates)
{
	/* A set that the gateway before has not judged is read again for this one. */
	certificates->is_asked_for = certificates->is_asked_for || certificates->next != NULL;
	close_set(&certificates->next, certificates->count);
	certificates->sent = 0;
}

void certificates_reload_later(struct certificates *certificates)
{
	certificates->is_asked_for = certificates_exist(certificates);
}

void certificates_on_ready(struct certificates *certificates)
{
	if (certificates->is_asked_for)
		certificates_reload(certificates);
}

void certificates_reload(struct certificates *certificates)
{
	struct error err = { ERROR_NONE, "" };

	if (certificates->next != NULL || certificates_has_untold(certificates)) {
		certificates->is_asked_for = true;
		return;
	}
	CHECK(certificates->next == NULL);
	certificates->is_asked_for = false;
	certificates->next =
		open_set(certificates->config, certificates->running, certificates->count, &err);
	if (certificates->next == NULL)
		LOG(CERTIFICATES_REFUSED, LOG_STR("error", err.text));
	else
		certificates->sent = 0;
}

bool certificates_on_verdict(struct certificates *certificates, bool is_used)
{
	if (certificates->next == NULL || certificates_has_untold(certificates))
		return false; /* no set was sent that could be judged */
	if (is_used) {
		close_set(&certificates->used, certificates->count);
		certificates->used = certificates->next;
		certificates->next = NULL;
	}
	close_set(&certificates->next, certificates->count);
	if (certificates->is_asked_for)
		certificates_reload(certificates);
	return certificates->next == NULL;
}

void certificates_give_up(struct certificates *certificates)
{
	close_set(&certificates->next, certificates->count);
	certificates->is_asked_for = false;
}

bool certificates_is_reloading(const struct certificates *certificates)
{
	return certificates->next != NULL || certificates->is_asked_for;
}

/* Entry number `at`, counted over all listeners. */
static int send_entry(const struct certificates *certificates, size_t at, int gateway_fd)
{
	const int *fds = (certificates->next != NULL ? certificates->next : certificates->used) +
			 at * CERTIFICATES_FILES;
	struct ipc_message message = { .type = IPC_CERTIFICATE,
				       .certificate.is_next = certificates->is_next,
				       .fds = { fds[0], fds[1], fds[2] },
				       .fd_count = fds[2] >= 0 ? 3 : 2 };
	struct error err = { ERROR_NONE, "" };
	uint32_t listener = 0;

	CHECK(at < certificates->count);
	while (at >= certificates->config->listen[listener].tls_count)
		at -= certificates->config->listen[listener++].tls_count;
	message.certificate.listener = listener;
	message.certificate.entry = (uint32_t)at;
	return ipc_send(gateway_fd, &message, &err);
}

void certificates_tell(struct certificates *certificates, int gateway_fd)
{
	const struct ipc_message end = { .type = IPC_CERTIFICATES_END };
	struct error err = { ERROR_NONE, "" };

	while (certificates_has_untold(certificates)) {
		bool is_end = certificates->sent == certificates->count;

		CHECK(certificates->sent <= certificates->count);
		if ((is_end ? ipc_send(gateway_fd, &end, &err) :
			      send_entry(certificates, certificates->sent, gateway_fd)) < 0)
			return;
		certificates->sent++;
	}
}

int certificates_tell_next(struct certificates *next, int gateway_fd)
{
	CHECK(next->next == NULL);
	next->is_next = true;
	while (next->sent < next->count) {
		if (send_entry(next, next->sent, gateway_fd) < 0)
			return -1;
		next->sent++;
	}
	return 0;
}

void certificates_replace(struct certificates *certificates, struct certificates *next)
{
	CHECK(next->next == NULL && next->sent == next->count);
	certificates_fini(certificates);
	*certificates = *next;
	certificates->is_next = false;
	certificates->sent = certificates->count + 1;
	*next = (struct certificates){ .count = 0 };
}

bool certificates_has_untold(const struct certificates *certificates)
{
	return certificates->count > 0 && certificates->sent <= certificates->count;
}
