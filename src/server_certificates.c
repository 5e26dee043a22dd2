/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads descriptors from their beginning, without moving the offset that the keeper shares. Texts of
 * keys are overwritten as soon as the set has been judged.
 */
#include "server_certificates.h"

#include <stdlib.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/mem.h"
#include "obs/log.h"

void server_certificates_init(struct server_certificates *sc, const struct config *config,
			      struct tickets *tickets)
{
	size_t count = config->listen_count + 1;

	CHECK(config->listen_count > 0);
	*sc = (struct server_certificates){ .config = config, .tickets = tickets };
	sc->servers = mem_zalloc(count * sizeof(*sc->servers));
	sc->texts = mem_zalloc(count * sizeof(*sc->texts));
	for (size_t i = 0; i < config->listen_count; i++)
		sc->texts[i] = mem_zalloc((config->listen[i].tls_count * CERTIFICATES_FILES + 1) *
					  sizeof(struct buf));
}

static void server_certificates_forget(struct server_certificates *sc)
{
	for (size_t i = 0; i < sc->config->listen_count; i++) {
		for (size_t j = 0; j < sc->config->listen[i].tls_count * CERTIFICATES_FILES; j++)
			buf_wipe(&sc->texts[i][j]);
	}
}

void server_certificates_fini(struct server_certificates *sc)
{
	server_certificates_forget(sc);
	for (size_t i = 0; i < sc->config->listen_count; i++) {
		tls_server_unref(&sc->servers[i]);
		free(sc->texts[i]);
	}
	free(sc->servers);
	free(sc->texts);
}

bool server_certificates_are_needed(const struct server_certificates *sc)
{
	for (size_t i = 0; i < sc->config->listen_count; i++) {
		if (sc->config->listen[i].tls_count > 0)
			return true;
	}
	return false;
}

/* A file that cannot be read, or is too large, is empty; then it holds nothing that can be used. */
static void read_text(int fd, struct buf *text)
{
	char *room;
	ssize_t n;

	buf_wipe(text);
	/* In full at once: a buffer that grew would leave copies of the key behind. */
	room = buf_reserve(text, CERTIFICATES_BYTES_MAX + 1);
	do {
		n = pread(fd, room + text->len, CERTIFICATES_BYTES_MAX + 1 - text->len,
			  (off_t)text->len);
		text->len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && text->len <= CERTIFICATES_BYTES_MAX);
	if (n < 0 || text->len > CERTIFICATES_BYTES_MAX)
		buf_wipe(text);
}

void server_certificates_take(struct server_certificates *sc, size_t listener, size_t entry,
			      const int *fds, size_t count)
{
	const struct config *config = sc->config;
	bool is_known =
		listener < config->listen_count && entry < config->listen[listener].tls_count;

	for (size_t i = 0; i < count; i++) {
		if (is_known && i < CERTIFICATES_FILES)
			read_text(fds[i], &sc->texts[listener][entry * CERTIFICATES_FILES + i]);
		close(fds[i]);
	}
}

static struct tls_server *make_server(const struct server_certificates *sc, size_t at,
				      struct error *err)
{
	const struct config_listen *listen = &sc->config->listen[at];
	const struct buf *texts = sc->texts[at];
	at_end(mem_free) struct tls_pem *pems = mem_alloc(listen->tls_count * sizeof(*pems));
	struct tls_conf conf = { .server_certificates = pems,
				 .count = listen->tls_count,
				 .client_ca = buf_slice(&texts[2]),
				 .is_only_13 = listen->tls[0].is_only_13,
				 .name = listen->address,
				 .tickets = sc->tickets };
	struct tls_server *server = NULL;

	CHECK(at < sc->config->listen_count && listen->tls_count > 0);
	for (size_t i = 0; i < listen->tls_count; i++)
		pems[i] = (struct tls_pem){ buf_slice(&texts[i * CERTIFICATES_FILES]),
					    buf_slice(&texts[i * CERTIFICATES_FILES + 1]) };
	/* An empty file must not open the door. */
	if (listen->tls[0].client_ca != NULL && conf.client_ca.n == 0)
		error_set(err, ERROR_INVALID, "client_ca: holds no certificate");
	else
		server = tls_server_new(&conf, err);
	return server;
}

bool server_certificates_use(struct server_certificates *sc)
{
	size_t count = sc->config->listen_count;
	at_end(mem_free) struct tls_server **servers = mem_zalloc((count + 1) * sizeof(*servers));
	bool is_good = true;

	/* Goes on after a bad one, so that everything that is wrong is logged. */
	for (size_t i = 0; i < count; i++) {
		struct error err = { ERROR_NONE, "" };

		if (sc->config->listen[i].tls_count == 0)
			continue;
		servers[i] = make_server(sc, i, &err);
		if (servers[i] == NULL) {
			is_good = false;
			LOG(CERTIFICATES_REFUSED, LOG_STR("address", sc->config->listen[i].address),
			    LOG_STR("error", err.text));
		}
	}
	server_certificates_forget(sc);
	for (size_t i = 0; i < count; i++) {
		if (is_good) {
			struct tls_server *old = sc->servers[i];

			sc->servers[i] = servers[i];
			servers[i] = old;
		}
		tls_server_unref(&servers[i]);
	}
	if (is_good)
		LOG(CERTIFICATES_USED, LOG_INT("listeners", count));
	return is_good;
}

bool server_certificates_report(const struct server_certificates *sc, size_t index,
				struct certificate_report *report_r)
{
	for (size_t i = 0; i < sc->config->listen_count; i++) {
		const struct config_listen *listen = &sc->config->listen[i];

		if (sc->servers[i] == NULL)
			continue;
		CHECK(listen->tls_count > 0);
		if (index < listen->tls_count) {
			*report_r = (struct certificate_report){
				.listener = listen->address,
				.file = listen->tls[index].certificate,
				.not_after_ms = tls_server_not_after_ms(sc->servers[i], index),
			};
			return true;
		}
		index -= listen->tls_count;
	}
	return false;
}
