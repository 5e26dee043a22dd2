/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's easy interface, with the handle of auth/curl_handle. The daemon is asked with HTTP/1.0: it
 * then closes at the end of its answer, and a stream that is cut off is one that has ended. Unless
 * there is a limit its answer is waited for as long as it takes: whoever is tired of it has Ctrl-C.
 */
#include "ctl/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/curl_handle.h"
#include "auth/url.h"
#include "base/mem.h"
#include "config/variables.h"

#define SYSTEM_SOCKET "/run/mcpgated/admin.sock"
#define WHY_NONE                                                                                                 \
	"; is it running? If its admin.address is another one, name it with --socket or MCPGATED_SOCKET; if it " \
	"has none, the line admin_off of its log says why"
#define WHY_NOT_OWN                                                                                   \
	"for a daemon of your own, XDG_RUNTIME_DIR has to be set, to the same directory, for it and " \
	"for mcpgatectl; else "
#define REPLY_BYTES_MAX ((size_t)256 << 20)
#define WEB_BODY_BYTES_MAX ((size_t)256 << 10)
#define WEB_CONNECT_MS 5000
#define WEB_TOTAL_MS 15000

struct transfer {
	const struct client_request *request;
	struct client_reply *reply;
	CURL *easy;
	bool is_refused; /* the address */
	bool is_too_big;
	bool is_enough;
	char error[CURL_ERROR_SIZE];
};

/*
 * Where a daemon of the user's own has its socket; false: nowhere. sudo takes the variable away, and says who it was: then
 * it is where the variable usually points to.
 */
static bool find_user_socket(char path_r[CLIENT_PATH_BYTES])
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	const char *uid = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	int length = CLIENT_PATH_BYTES;

	if (dir != NULL)
		length = snprintf(path_r, CLIENT_PATH_BYTES, "%s/mcpgated/admin.sock", dir);
	else if (geteuid() != 0)
		length = snprintf(path_r, CLIENT_PATH_BYTES, "/run/user/%u/mcpgated/admin.sock",
				  (unsigned int)geteuid());
	else if (uid != NULL && uid[0] != '\0' && uid[strspn(uid, "0123456789")] == '\0')
		length = snprintf(path_r, CLIENT_PATH_BYTES, "/run/user/%s/mcpgated/admin.sock",
				  uid);
	return length < CLIENT_PATH_BYTES;
}

bool client_find_socket(char path_r[CLIENT_PATH_BYTES])
{
	const char *given = getenv(CLIENT_SOCKET_VARIABLE);

	if (given != NULL && given[0] != '\0' && strlen(given) < CLIENT_PATH_BYTES) {
		snprintf(path_r, CLIENT_PATH_BYTES, "%s", given);
		return true;
	}
	if (find_user_socket(path_r) && access(path_r, F_OK) == 0)
		return true;
	snprintf(path_r, CLIENT_PATH_BYTES, "%s", SYSTEM_SOCKET);
	return getenv("XDG_RUNTIME_DIR") == NULL;
}

/* ---- a request ---- */

static int status_of(const struct transfer *transfer)
{
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static curl_socket_t on_open(void *arg, not_used curlsocktype purpose,
			     struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;
	const struct address_filter address_filter = { .loopback = transfer->request->may_loopback,
						       .private = true };

	return curl_handle_open_socket(&address_filter, address, &transfer->is_refused);
}

/* The data lines that are whole are handed out: the daemon writes one for each event. */
static void hand_out(const struct transfer *transfer)
{
	static const struct slice prefix = SLICE("data: ");
	struct buf *body = &transfer->reply->body;
	struct slice rest = buf_slice(body);

	while (rest.n > 0 && memchr(rest.p, '\n', rest.n) != NULL) {
		struct slice line = slice_cut(&rest, '\n');

		if (slice_has_prefix(line, prefix))
			transfer->request->on_event(slice_of(line.p + prefix.n, line.n - prefix.n));
	}
	CHECK(rest.n <= body->len);
	buf_consume(body, body->len - rest.n);
}

static bool ends_event(const struct buf *body)
{
	return (body->len >= 2 && memcmp(body->data + body->len - 2, "\n\n", 2) == 0) ||
	       (body->len >= 4 && memcmp(body->data + body->len - 4, "\r\n\r\n", 4) == 0);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	const struct client_request *request = transfer->request;
	struct buf *body = &transfer->reply->body;
	size_t max = request->socket != NULL ? REPLY_BYTES_MAX : WEB_BODY_BYTES_MAX;
	size_t bytes = curl_handle_take_body(body, data, size * count, max, &transfer->is_too_big);

	CHECK(body->len <= max);
	if (request->on_event != NULL && status_of(transfer) == 200)
		hand_out(transfer);
	transfer->is_enough = request->is_enough != NULL && ends_event(body) &&
			      request->is_enough(buf_slice(body));
	return transfer->is_enough ? 0 : bytes;
}

static struct curl_slist *make_fields(const struct transfer *transfer)
{
	const struct client_request *request = transfer->request;
	struct curl_slist *fields = NULL;

	curl_handle_add_field(&fields, "Accept",
			      request->accept != NULL ? request->accept :
							"application/json, text/event-stream");
	if (request->token != NULL) {
		at_end(secret_free) char *value = mem_printf("Bearer %s", request->token);

		curl_handle_add_field(&fields, "Authorization", value);
	}
	if (request->session != NULL)
		curl_handle_add_field(&fields, "Mcp-Session-Id", request->session);
	if (request->claims != NULL)
		curl_handle_add_field(&fields, "Caller-Claims", request->claims);
	if (request->body.n > 0)
		curl_handle_set_body(transfer->easy, &fields, "application/json", request->body);
	return fields;
}

static CURLcode perform(struct transfer *transfer, const struct curl_handle_conf *conf,
			const char *url)
{
	const struct client_request *request = transfer->request;
	CURL *easy = transfer->easy = curl_handle_new(conf);
	struct curl_slist *fields = make_fields(transfer);
	CURLcode code;

	CHECK(easy != NULL && request->method != NULL);
	if (request->socket != NULL) {
		curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_0);
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket);
	} else {
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	code = curl_easy_perform(easy);
	curl_handle_free_fields(&fields);
	return code;
}

/* NULL: there is none. */
static char *field_of(const struct transfer *transfer, const char *name)
{
	struct slice value = curl_handle_answer_field(transfer->easy, name);

	return value.p != NULL ? mem_dup_slice(value) : NULL;
}

/* ---- the daemon ---- */

/* -1, and why there is no answer. */
static int fail(const struct transfer *transfer, CURLcode code, struct error *err)
{
	const char *path = transfer->request->socket;
	char other[CLIENT_PATH_BYTES];
	long number = 0;

	CHECK(code != CURLE_OK);
	if (transfer->is_too_big)
		return error_set(err, ERROR_LIMIT, "the daemon's answer is too long");
	if (code == CURLE_GOT_NOTHING)
		return error_set(err, ERROR_SYNTAX,
				 "the daemon has closed the connection without an answer");
	if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY)
		return error_set(err, ERROR_SYNTAX, "what answers at the socket is not mcpgated");
	if (code != CURLE_COULDNT_CONNECT)
		return error_set(err, ERROR_SYSTEM, "cannot read from the daemon: %s",
				 curl_easy_strerror(code));
	curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
	if ((number == ENOENT || number == ECONNREFUSED) && strcmp(path, SYSTEM_SOCKET) == 0 &&
	    find_user_socket(other))
		return error_set(err, ERROR_SYSTEM,
				 "no daemon answers at %.108s, nor at " SYSTEM_SOCKET WHY_NONE,
				 other);
	if (number == ENOENT || number == ECONNREFUSED)
		return error_set(err, ERROR_SYSTEM, "no daemon answers at %.108s" WHY_NONE, path);
	if (number == EACCES && strcmp(path, SYSTEM_SOCKET) == 0 &&
	    getenv("XDG_RUNTIME_DIR") != NULL && find_user_socket(other))
		return error_set(err, ERROR_SYSTEM,
				 SYSTEM_SOCKET " is only for the daemon's user and root; none of "
					       "yours answers at %.108s; else try it with sudo",
				 other);
	if (number == EACCES)
		return error_set(
			err, ERROR_SYSTEM,
			"%.120s is only for the daemon's user and root; %stry it with sudo", path,
			strcmp(path, SYSTEM_SOCKET) == 0 ? WHY_NOT_OWN : "");
	errno = (int)number;
	return error_set_errno(err, "cannot connect to %.120s", path);
}

int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err)
{
	const struct curl_handle_conf conf = { .agent = "mcpgatectl/" PACKAGE_VERSION,
					       .total_ms = request->total_ms,
					       .allow_http = true };
	struct transfer transfer = { .request = request, .reply = reply_r };
	at_end(mem_free) char *url = mem_printf("http://localhost%s", request->target);
	CURLcode code;

	CHECK(strlen(request->socket) < CLIENT_PATH_BYTES && request->target[0] == '/');
	*reply_r = (struct client_reply){ .status = 0 };
	code = perform(&transfer, &conf, url);
	reply_r->status = status_of(&transfer);
	reply_r->session = field_of(&transfer, "Mcp-Session-Id");
	if (code != CURLE_OK) {
		fail(&transfer, code, err);
		client_reply_fini(reply_r);
	}
	curl_easy_cleanup(transfer.easy);
	return code == CURLE_OK ? 0 : -1;
}

json_t *client_reply_read(const struct client_reply *reply, struct error *err)
{
	json_error_t why;
	json_t *answer = json_loadb(reply->body.len > 0 ? reply->body.data : "", reply->body.len,
				    JSON_ALLOW_NUL, &why);

	if (answer == NULL)
		error_set(err, ERROR_SYNTAX, "the daemon's answer cannot be read: %s", why.text);
	return answer;
}

void client_reply_fini(struct client_reply *reply)
{
	buf_fini(&reply->body);
	buf_fini(&reply->error);
	buf_fini(&reply->challenge);
	free(reply->session);
	free(reply->type);
	free(reply->location);
	free(reply->address);
	*reply = (struct client_reply){ .status = reply->status };
}

/* ---- web servers ---- */

static const char *hint_of(CURLcode code)
{
	static const struct {
		CURLcode code;
		const char *hint;
	} hints[] = {
		{ CURLE_COULDNT_RESOLVE_HOST, "; is the name right, and does DNS know it?" },
		{ CURLE_COULDNT_CONNECT, "; does it run, and is the port right?" },
		{ CURLE_SSL_CONNECT_ERROR, "; does this port speak TLS?" },
		{ CURLE_PEER_FAILED_VERIFICATION,
		  "; the certificate must name this host, be valid now, be signed by an authority "
		  "that clients trust, and be sent with its intermediate certificates" },
		{ CURLE_GOT_NOTHING, "; does this port speak HTTP, or only TLS?" },
	};

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		if (hints[i].code == code)
			return hints[i].hint;
	}
	CHECK(code != CURLE_OK);
	return "";
}

static char *text_or_empty(char *text)
{
	return text != NULL ? text : mem_strdup("");
}

static void finish_web(const struct transfer *transfer, CURLcode code)
{
	struct client_reply *reply = transfer->reply;
	struct curl_header *header;
	const char *address = NULL;

	curl_easy_getinfo(transfer->easy, CURLINFO_PRIMARY_IP, &address);
	reply->address = mem_strdup(address != NULL ? address : "");
	reply->type = text_or_empty(field_of(transfer, "Content-Type"));
	reply->location = text_or_empty(field_of(transfer, "Location"));
	reply->session = field_of(transfer, "Mcp-Session-Id");
	for (size_t i = 0; curl_easy_header(transfer->easy, "WWW-Authenticate", i, CURLH_HEADER, -1,
					    &header) == CURLHE_OK;
	     i++)
		buf_printf(&reply->challenge, "%s%s", i > 0 ? ", " : "", header->value);
	if (code == CURLE_OK || transfer->is_enough)
		reply->status = status_of(transfer);
	else if (transfer->is_too_big)
		buf_append_str(&reply->error, "the answer is too large");
	else if (transfer->is_refused)
		buf_append_str(&reply->error,
			       "a stranger's address leads to loopback or to another "
			       "network that is not asked");
	else
		buf_printf(&reply->error, "%s%s",
			   transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code),
			   hint_of(code));
}

void client_ask_web(const struct client_request *request, struct client_reply *reply_r)
{
	const struct curl_handle_conf conf = {
		.agent = "mcpgatectl/" PACKAGE_VERSION,
		.connect_ms = WEB_CONNECT_MS,
		.total_ms = WEB_TOTAL_MS,
		.allow_http = true,
		.ca = request->ca,
	};
	struct transfer transfer = { .request = request, .reply = reply_r };
	struct url url;

	CHECK(request->socket == NULL && request->target != NULL);
	*reply_r = (struct client_reply){ .status = 0 };
	if (url_parse(slice_str(request->target), &url) < 0 ||
	    (!url_is_https(&url) && !(slice_is_equal_nocase(url.scheme, SLICE_LIT("http")) &&
				      url_is_loopback(&url) && request->may_loopback))) {
		buf_append_str(&reply_r->error, "it is not an https URL");
		return;
	}
	finish_web(&transfer, perform(&transfer, &conf, request->target));
	curl_easy_cleanup(transfer.easy);
}
