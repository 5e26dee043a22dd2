/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads descriptors from their beginning, without moving the offset that the keeper shares. Texts of
 * keys are overwritten as soon as the set has been judged.
 */
#include "identities.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/certificates.h"
#include "config/file.h"
#include "obs/log.h"

#define FILES 3 /* certificate, key, client_ca */

void identities_init(struct identities *identities, const struct config *config)
{
	size_t count = config->listen_count + 1;

	*identities = (struct identities){ .config = config };
	identities->servers = mem_zalloc(count * sizeof(*identities->servers));
	identities->texts = mem_zalloc(count * sizeof(*identities->texts));
	for (size_t i = 0; i < config->listen_count; i++)
		identities->texts[i] =
			mem_zalloc((config->listen[i].tls_count * FILES + 1) * sizeof(struct buf));
	if (identities_are_needed(identities))
		identities->tickets = tickets_new();
}

static void identities_forget(struct identities *identities)
{
	for (size_t i = 0; i < identities->config->listen_count; i++) {
		for (size_t j = 0; j < identities->config->listen[i].tls_count * FILES; j++)
			file_wipe(&identities->texts[i][j]);
	}
}

void identities_fini(struct identities *identities)
{
	identities_forget(identities);
	for (size_t i = 0; i < identities->config->listen_count; i++) {
		tls_server_unref(&identities->servers[i]);
		free(identities->texts[i]);
	}
	free(identities->servers);
	free(identities->texts);
	tickets_free(&identities->tickets);
}

bool identities_are_needed(const struct identities *identities)
{
	for (size_t i = 0; i < identities->config->listen_count; i++) {
		if (identities->config->listen[i].tls_count > 0)
			return true;
	}
	return false;
}

/* A file that cannot be read, or is too large, is empty; then it holds nothing that can be used. */
static void read_text(int fd, struct buf *text)
{
	char *room;
	ssize_t n;

	file_wipe(text);
	/* In full at once: a buffer that grew would leave copies of the key behind. */
	room = buf_reserve(text, CERTIFICATES_BYTES_MAX + 1);
	do {
		n = pread(fd, room + text->len, CERTIFICATES_BYTES_MAX + 1 - text->len,
			  (off_t)text->len);
		text->len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && text->len <= CERTIFICATES_BYTES_MAX);
	if (n < 0 || text->len > CERTIFICATES_BYTES_MAX)
		file_wipe(text);
}

void identities_take(struct identities *identities, size_t listener, size_t entry, const int *fds,
		     size_t count)
{
	const struct config *config = identities->config;
	bool is_known =
		listener < config->listen_count && entry < config->listen[listener].tls_count;

	for (size_t i = 0; i < count; i++) {
		if (is_known && i < FILES)
			read_text(fds[i], &identities->texts[listener][entry * FILES + i]);
		close(fds[i]);
	}
}

static struct tls_server *make_server(const struct identities *identities, size_t at,
				      struct error *err)
{
	const struct config_listen *listen = &identities->config->listen[at];
	const struct buf *texts = identities->texts[at];
	struct tls_pem *pems = mem_alloc(listen->tls_count * sizeof(*pems));
	struct tls_conf conf = { .identities = pems,
				 .count = listen->tls_count,
				 .client_ca = buf_slice(&texts[2]),
				 .is_only_13 = listen->tls[0].min_version == CONFIG_TLS_13,
				 .name = listen->address,
				 .tickets = identities->tickets };
	struct tls_server *server = NULL;

	for (size_t i = 0; i < listen->tls_count; i++)
		pems[i] = (struct tls_pem){ buf_slice(&texts[i * FILES]),
					    buf_slice(&texts[i * FILES + 1]) };
	/* An empty file must not open the door. */
	if (listen->tls[0].client_ca != NULL && conf.client_ca.n == 0)
		error_set(err, ERROR_INVALID, "client_ca: holds no certificate");
	else
		server = tls_server_new(&conf, err);
	free(pems);
	return server;
}

/* All listeners are looked at, so that all that is wrong is said. */
static bool make_servers(const struct identities *identities, struct tls_server **servers_r)
{
	bool is_good = true;

	for (size_t i = 0; i < identities->config->listen_count; i++) {
		struct error err = { ERROR_NONE, "" };

		if (identities->config->listen[i].tls_count == 0)
			continue;
		servers_r[i] = make_server(identities, i, &err);
		if (servers_r[i] != NULL)
			continue;
		is_good = false;
		LOG(CERTIFICATES_REFUSED, LOG_STR("address", identities->config->listen[i].address),
		    LOG_STR("error", err.text));
	}
	return is_good;
}

bool identities_use(struct identities *identities)
{
	size_t count = identities->config->listen_count;
	struct tls_server **servers = mem_zalloc((count + 1) * sizeof(*servers));
	bool is_good = make_servers(identities, servers);

	identities_forget(identities);
	for (size_t i = 0; i < count; i++) {
		if (is_good) {
			struct tls_server *old = identities->servers[i];

			identities->servers[i] = servers[i];
			servers[i] = old;
		}
		tls_server_unref(&servers[i]);
	}
	free(servers);
	if (is_good)
		LOG(CERTIFICATES_USED, LOG_INT("listeners", count));
	return is_good;
}
