/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl over a unix socket. HTTP/1.0: the daemon then closes at the end of its answer, and a stream that
 * is cut off is one that has ended. Unless there is a limit it waits for as long as it takes: whoever is tired of it has Ctrl-C.
 */
#include "ctl/client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/curl_handle.h"
#include "base/mem.h"

#define SYSTEM_SOCKET "/run/mcpgated/admin.sock"
#define WHY_NONE                                                                              \
	"; is it running? If its admin.address is another one, name it with --socket; if it " \
	"has none, the line admin_off of its log says why"
#define REPLY_BYTES_MAX (256u * 1024 * 1024)

struct transfer {
	const struct client_request *request;
	struct client_reply *reply;
	CURL *easy;
	bool is_too_big;
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
	if (find_user_socket(path_r) && access(path_r, F_OK) == 0)
		return true;
	snprintf(path_r, CLIENT_PATH_BYTES, "%s", SYSTEM_SOCKET);
	return getenv("XDG_RUNTIME_DIR") == NULL;
}

static int status_of(const struct transfer *transfer)
{
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

/* Of events the data lines that are whole are handed out: the daemon writes one for each event. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	static const struct slice prefix = SLICE("data: ");
	struct transfer *transfer = arg;
	struct buf *body = &transfer->reply->body;
	size_t bytes = curl_handle_take_body(body, data, size * count, REPLY_BYTES_MAX,
					     &transfer->is_too_big);
	struct slice rest = buf_slice(body);

	if (transfer->request->on_event == NULL || status_of(transfer) != 200)
		return bytes;
	while (rest.n > 0 && memchr(rest.p, '\n', rest.n) != NULL) {
		struct slice line = slice_cut(&rest, '\n');

		if (slice_has_prefix(line, prefix))
			transfer->request->on_event(slice_of(line.p + prefix.n, line.n - prefix.n));
	}
	CHECK(rest.n <= body->len);
	buf_consume(body, body->len - rest.n);
	return bytes;
}

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
	if (number == EACCES)
		return error_set(err, ERROR_SYSTEM,
				 "%.120s is only for the daemon's user and root; try it with sudo",
				 path);
	errno = (int)number;
	return error_set_errno(err, "cannot connect to %.120s", path);
}

static struct curl_slist *set_request(struct transfer *transfer, const char *url)
{
	const struct client_request *request = transfer->request;
	struct curl_slist *fields = NULL;
	CURL *easy = transfer->easy;

	CHECK(easy != NULL && request->method != NULL);
	curl_handle_add_field(&fields, "Accept", "application/json, text/event-stream");
	if (request->session != NULL)
		curl_handle_add_field(&fields, "Mcp-Session-Id", request->session);
	if (request->body.n > 0)
		curl_handle_set_body(easy, &fields, "application/json", request->body);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_0);
	curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	return fields;
}

int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err)
{
	const struct curl_handle_conf conf = { .agent = "mcpgatectl/" PACKAGE_VERSION,
					       .total_ms = request->total_ms,
					       .allow_http = true };
	struct transfer transfer = { .request = request, .reply = reply_r };
	char *url = mem_printf("http://localhost%s", request->target);
	struct curl_slist *fields;
	struct slice session;
	CURLcode code;

	CHECK(strlen(request->socket) < CLIENT_PATH_BYTES && request->target[0] == '/');
	*reply_r = (struct client_reply){ .status = 0 };
	transfer.easy = curl_handle_new(&conf);
	fields = set_request(&transfer, url);
	code = curl_easy_perform(transfer.easy);
	reply_r->status = status_of(&transfer);
	session = curl_handle_answer_field(transfer.easy, "Mcp-Session-Id");
	if (session.n > 0)
		reply_r->session = mem_dup_slice(session);
	if (code != CURLE_OK) {
		fail(&transfer, code, err);
		client_reply_fini(reply_r);
	}
	curl_easy_cleanup(transfer.easy);
	curl_handle_free_fields(&fields);
	free(url);
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
	free(reply->session);
	reply->session = NULL;
}

int client_follow(const struct client_request *request, struct error *err)
{
	struct client_reply reply;
	const char *why;
	json_t *answer;
	int result = 0;

	CHECK(request->on_event != NULL);
	if (client_ask(request, &reply, err) < 0)
		return -1;
	if (reply.status != 200) {
		answer = client_reply_read(&reply, err);
		why = json_string_value(json_object_get(answer, "error"));
		if (why != NULL)
			result = error_set(err, ERROR_INVALID, "%s", why);
		else
			result = error_set(err, ERROR_INVALID, "the daemon refuses with status %d",
					   reply.status);
		json_decref(answer);
	}
	client_reply_fini(&reply);
	return result;
}
