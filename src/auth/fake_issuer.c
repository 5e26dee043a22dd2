/* SPDX-License-Identifier: Apache-2.0 */
/* A process that accepts, and one for each connection, so that one that hangs holds nobody up. */
#include "auth/fake_issuer.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "base/mem.h"

#define LIFE_S 60 /* of a connection's process, whatever happens */

/* ---- one connection ---- */

struct peer {
	int fd;
	SSL *ssl;
};

static ssize_t peer_read(struct peer *peer, char *to, size_t size)
{
	return peer->ssl != NULL ? SSL_read(peer->ssl, to, (int)size) : read(peer->fd, to, size);
}

/* A client that leaves ends the process. */
static void peer_write(struct peer *peer, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = peer->ssl != NULL ? SSL_write(peer->ssl, data, (int)size) :
						write(peer->fd, data, size);

		if (n <= 0)
			_exit(0);
		data += n;
		size -= (size_t)n;
	}
}

/* Head and body, as far as announced. */
static void read_request(struct peer *peer, char *text, size_t size)
{
	size_t length = 0;
	size_t wanted = size;

	while (length < wanted && length < size - 1) {
		ssize_t n = peer_read(peer, text + length, size - 1 - length);
		const char *end;
		const char *announced;

		if (n <= 0)
			_exit(0);
		length += (size_t)n;
		text[length] = '\0';
		end = strstr(text, "\r\n\r\n");
		announced = strcasestr(text, "\r\nContent-Length:");
		if (end != NULL)
			wanted = (size_t)(end + 4 - text) +
				 (announced != NULL ? (size_t)atoi(announced + 17) : 0);
	}
}

static void write_head(struct peer *peer, const struct fake_page *page, int status, size_t length)
{
	char head[1024];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d Fake\r\nContent-Type: application/json\r\n%s%s%s%s"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, page->fields, page->etag[0] ? "ETag: " : "", page->etag,
			 page->etag[0] ? "\r\n" : "", length);

	peer_write(peer, head, (size_t)n);
}

static void write_endless(struct peer *peer, const struct fake_page *page)
{
	char bytes[4096];

	memset(bytes, ' ', sizeof(bytes));
	write_head(peer, page, 200, (size_t)1 << 30);
	for (;;)
		peer_write(peer, bytes, sizeof(bytes));
}

static void write_page(struct peer *peer, const struct fake_page *page)
{
	size_t length = strlen(page->body);
	bool is_known = page->etag[0] != '\0' && strstr(page->request, page->etag) != NULL;

	if (page->mode == FAKE_RESET)
		_exit(0);
	if (page->mode == FAKE_HANG)
		sleep(LIFE_S);
	if (page->mode == FAKE_SLOW)
		usleep(300 * 1000);
	if (page->mode == FAKE_HUGE)
		write_endless(peer, page);
	write_head(peer, page, is_known ? 304 : page->status, is_known ? 0 : length);
	if (is_known)
		return;
	if (page->mode != FAKE_DRIP)
		peer_write(peer, page->body, page->mode == FAKE_CUT ? length / 2 : length);
	for (size_t i = 0; page->mode == FAKE_DRIP && i < length; i++) {
		peer_write(peer, page->body + i, 1);
		usleep(100 * 1000);
	}
}

static struct fake_page *find_page(struct fake_issuer *issuer, const char *path, size_t length)
{
	for (size_t i = 0; i < FAKE_PAGES; i++) {
		struct fake_page *page = &issuer->pages[i];

		if (strlen(page->path) == length && memcmp(page->path, path, length) == 0)
			return page;
	}
	return NULL;
}

static void serve(struct fake_issuer *issuer, int fd)
{
	static const struct fake_page missing = { .status = 404,
						  .body = "<html>nothing here</html>" };
	struct peer peer = { fd, NULL };
	struct fake_page *page;
	char request[4096];
	const char *path;

	alarm(LIFE_S);
	if (issuer->tls != NULL) {
		peer.ssl = SSL_new(issuer->tls);
		SSL_set_fd(peer.ssl, fd);
		if (SSL_accept(peer.ssl) != 1)
			_exit(0);
	}
	read_request(&peer, request, sizeof(request));
	path = strchr(request, ' ') + 1;
	page = find_page(issuer, path, strcspn(path, " "));
	if (page == NULL) {
		__atomic_add_fetch(&issuer->other_hits, 1, __ATOMIC_SEQ_CST);
		write_page(&peer, &missing);
	} else {
		memcpy(page->request, request, sizeof(request));
		__atomic_add_fetch(&page->hits, 1, __ATOMIC_SEQ_CST);
		write_page(&peer, page);
	}
	if (peer.ssl != NULL)
		SSL_shutdown(peer.ssl);
	shutdown(fd, SHUT_WR);
}

static void accept_for_ever(struct fake_issuer *issuer, int listener)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		if (fork() == 0) {
			serve(issuer, fd);
			_exit(0);
		}
		close(fd);
	}
}

/* ---- TLS ---- */

static X509 *make_certificate(EVP_PKEY *key, const char *host)
{
	X509 *certificate = X509_new();
	char *name = mem_printf("DNS:%s", host);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, name);

	free(name);
	X509_set_version(certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
				   (const unsigned char *)host, -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
	X509_set_pubkey(certificate, key);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

static void make_tls(struct fake_issuer *issuer, const char *host)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = make_certificate(key, host);
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	long size;

	PEM_write_bio_X509(bio, certificate);
	size = BIO_get_mem_data(bio, &data);
	issuer->certificate = mem_dup_slice(slice_of(data, (size_t)size));
	issuer->tls = SSL_CTX_new(TLS_server_method());
	CHECK(SSL_CTX_use_certificate(issuer->tls, certificate) == 1 &&
	      SSL_CTX_use_PrivateKey(issuer->tls, key) == 1);
	BIO_free(bio);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

/* ---- whole ---- */

static int listen_anywhere(int *port_r)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 64) == 0 &&
	      getsockname(fd, (struct sockaddr *)&at, &size) == 0);
	*port_r = ntohs(at.sin_port);
	return fd;
}

struct fake_issuer *fake_issuer_start(const char *host)
{
	struct fake_issuer *issuer = mmap(NULL, sizeof(*issuer), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int listener;
	pid_t pid; /* the memory is shared: the child must not write its 0 there */

	CHECK(issuer != MAP_FAILED);
	listener = listen_anywhere(&issuer->port);
	snprintf(issuer->origin, sizeof(issuer->origin), "%s://%s:%d",
		 host != NULL ? "https" : "http", host != NULL ? "localhost" : "127.0.0.1",
		 issuer->port);
	if (host != NULL)
		make_tls(issuer, host);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		accept_for_ever(issuer, listener);
	setpgid(pid, pid);
	issuer->pid = pid;
	close(listener);
	return issuer;
}

void fake_issuer_stop(struct fake_issuer **issuer)
{
	struct fake_issuer *i = *issuer;

	if (i == NULL)
		return;
	CHECK(i->pid > 0);
	kill(-i->pid, SIGKILL);
	waitpid(i->pid, NULL, 0);
	SSL_CTX_free(i->tls);
	free(i->certificate);
	munmap(i, sizeof(*i));
	*issuer = NULL;
}

struct fake_page *fake_issuer_page(struct fake_issuer *issuer, const char *path)
{
	struct fake_page *page = find_page(issuer, path, strlen(path));

	if (page != NULL)
		return page;
	page = find_page(issuer, "", 0);
	CHECK(page != NULL);
	page->status = 200;
	page->mode = FAKE_OK;
	snprintf(page->path, sizeof(page->path), "%s", path);
	return page;
}

void fake_page_set_body(struct fake_page *page, const char *body)
{
	CHECK(strlen(body) < sizeof(page->body));
	strcpy(page->body, body);
}
